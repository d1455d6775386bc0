// Who may come in, and several shards behind one page: token sign-in, roles, pausing one shard or all.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { browser, check, finish, must, open, start, up } from './lib.mjs';

const folder = mkdtempSync(join(tmpdir(), 'bigfleet-doors-'));
const [admin, looker] = ['a'.repeat(64), 'b'.repeat(64)];
const tokens = join(folder, 'tokens');
writeFileSync(tokens, `admin ${admin} alice\nreadonly ${looker} wall-display\n`, { mode: 0o600 });

const fleets = [await up('60'), await up('60')];
const shards = fleets.map((fleet) => fleet.lines.map((line) => /^ *shard +(http\S+)/.exec(line)?.[1]).find(Boolean));
const several = ['web', '--listen', '127.0.0.1:0', '--shard', shards[0], '--shard', shards[1]];
const page1 = await start(several, /^page on (\S+)/);
const page2 = await start(['web', '--listen', '127.0.0.1:0', '--tokens', tokens, '--shard', shards[0]], /^page on (\S+)/);
const { opened, close } = await browser();
try {
  const { page, errors } = await open(opened);
  const pauses = async (fleet) => (await fleet.ask('get', 'rails', '-o', 'json')).match(/both of them|only the second/g)?.length ?? 0;
  const send = async (reason) => {
    await page.locator('.pause .grow input').fill(reason);
    await page.locator('.pause button[type=submit]').click();
    await page.waitForSelector('.pause .note.good');
  };
  await page.goto(`${page1.match[1]}/#/system`);
  await page.waitForSelector('.pause');
  await check('several shards: each has its line, with its own cycle', async () => {
    await page.waitForFunction(() => document.querySelectorAll('main table tbody tr').length >= 2);
    must((await page.locator('header.top').innerText()).includes('2 shards'), await page.locator('header.top').innerText());
  });
  await check('several shards: all of them are paused at once', async () => {
    await send('both of them');
    for (const fleet of fleets) must((await pauses(fleet)) === 1, 'a shard is not paused');
    await page.waitForFunction(() => /2 PAUSED/.test(document.querySelector('header.top').innerText));
    await page.waitForSelector('.pauses li');
  });
  await check('several shards: what was asked of none is not done to all; a machine is found wherever it is', async () => {
    for (const fleet of fleets) await fleet.ask('resume', '--all');
    const { rows } = await page.evaluate(async () => (await fetch('/api/machines?limit=500')).json());
    const last = rows.at(-1).data.id;
    await page.goto(`${page1.match[1]}/#/machine/${last}`);
    await page.waitForSelector('.story');
  });
  must(errors.length === 0, errors.join('\n'));

  const door = await open(opened);
  const url = page2.match[1];
  await check('with tokens: nothing is shown before somebody signs in, and a wrong token is refused in words', async () => {
    await door.page.goto(url);
    await door.page.waitForSelector('.signin');
    const refused = await door.page.evaluate(async () => (await fetch('/api/hello')).status);
    must(refused === 401, `answered with ${refused}`);
    await door.page.locator('.signin input').fill('wrong');
    await door.page.locator('.signin button').click();
    await door.page.waitForSelector('.signin [role=alert]');
  });
  await check('with tokens: who may only look sees everything and no buttons', async () => {
    await door.page.locator('.signin input').fill(looker);
    await door.page.locator('.signin button').click();
    await door.page.waitForSelector('.tiles');
    await door.page.goto(`${url}/#/system`);
    await door.page.waitForSelector('text=You may look and not act');
    must((await door.page.locator('.pause').count()) === 0, 'there is a way to pause');
    const refused = await door.page.evaluate(async () => (await fetch('/api/pause', { method: 'POST', headers: { 'x-bigfleet': '1', 'content-type': 'application/json' }, body: '{"reason":"x"}' })).status);
    must(refused === 403, `a pause was answered with ${refused}`);
    const cookies = await door.context.cookies();
    must(cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === 'Strict', JSON.stringify(cookies));
    must(!cookies[0].value.includes(looker), 'the token is in the cookie');
    must(!(await door.page.content()).includes(looker), 'the token is in the page');
  });
  await check('with tokens: the role admin may act, and is named in what it did', async () => {
    const own = await open(opened);
    await own.page.goto(url);
    await own.page.locator('.signin input').fill(admin);
    await own.page.locator('.signin button').click();
    await own.page.waitForSelector('.tiles');
    await own.page.goto(`${url}/#/system`);
    await own.page.locator('.pause .grow input').fill('by a token');
    await own.page.locator('.pause button[type=submit]').click();
    await own.page.waitForSelector('.pauses li');
    must((await own.page.locator('.pauses').innerText()).includes('alice'), await own.page.locator('.pauses').innerText());
    await own.context.close();
  });
} finally {
  await close();
  await page1.stop();
  await page2.stop();
  for (const fleet of fleets) await fleet.stop();
  rmSync(folder, { recursive: true, force: true });
}
finish();
