// A pod on the page, in front of a shard with a real cluster: node tests/pods.mjs PAGE POD WORD...
// The pod waits; the page must say so, for whom it waits, and each of the words.
import { browser, check, clipped, finish, must, open } from './lib.mjs';

const [url, pod, ...words] = process.argv.slice(2);
const { opened, close } = await browser();
try {
  const { page, errors } = await open(opened);
  await check('question: why is my pod pending?', async () => {
    await page.goto(`${url}/#/needs`);
    await page.locator('input[type=search]').fill(pod);
    await page.keyboard.press('Enter');
    await page.waitForSelector('.story');
    const said = await page.locator('main').innerText();
    must(said.includes(`${pod} in `) && said.includes('waits for a node'), said);
    for (const word of words) must(said.includes(word), `no ${word} in ${said}`);
    must((await page.locator('.cli code').first().innerText()) === `bigfleet explain pod ${pod}`, 'no command');
    const cut = await clipped(page);
    must(cut.length === 0, `cut off: ${cut.join(' | ')}`);
  });
  await check('a pod that does not wait is said not to', async () => {
    await page.goto(`${url}/#/pod/${encodeURIComponent('nowhere/nobody')}`);
    await page.waitForSelector('[role=alert]');
    must(/among its \d+ waiting pods/.test(await page.locator('main').innerText()), await page.locator('main').innerText());
  });
  must(errors.length === 0, errors.join('\n'));
} finally {
  await close();
}
finish();
