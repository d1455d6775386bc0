// The page in a real browser, in front of a fleet that lives: every screen, every question, every width.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { browser, check, clipped, finish, must, open, up } from './lib.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const fleet = await up('60');
const { opened, close } = await browser();
const text = (page) => page.locator('main').innerText();

try {
  const { page, errors } = await open(opened);
  const api = (path) => page.evaluate(async (path) => (await fetch(`/api/${path}`)).json(), path);
  /** Asks until the answer is as it should be; the world moves on meanwhile. */
  const until = async (what, ask, good) => {
    for (let tries = 0; tries < 240; tries++) {
      const found = await ask();
      if (good(found)) return found;
      await page.waitForTimeout(500);
    }
    throw new Error(`waited two minutes for ${what}`);
  };
  const visit = async (hash, wait = 'main h1') => {
    await page.goto(`${fleet.url}/${hash}`);
    await page.waitForSelector(wait);
  };

  await check('the address is the first line that is printed', async () => {
    must(/^page +http:\/\/127\.0\.0\.1:\d+$/.test(fleet.lines[0]), fleet.lines[0]);
  });
  await page.goto(fleet.url);

  await check('Fleet: supply, clusters, money, mode and decisions are there', async () => {
    await page.waitForSelector('.tiles');
    await page.waitForSelector('.feed li');
    const said = await text(page);
    for (const word of ['shop', 'ml', 'batch', 'spot', 'on-demand', 'bare-metal', '/h']) must(said.includes(word), `no ${word} in ${said}`);
    must((await page.locator('header.top').innerText()).includes('AUTO'), 'the mode is not visible');
    must((await page.locator('header.top').innerText()).includes('SIMULATED'), 'simulated is not labelled');
  });
  await check('Fleet is live: the clock moves by itself', async () => {
    const first = await page.locator('.live').innerText();
    await page.waitForFunction((before) => document.querySelector('.live').innerText !== before, first);
  });
  await fleet.ask('demand', 'wait', '--for', '3m');

  await check('Fleet: how far a cluster is trusted is visible', async () => {
    await fleet.ask('mode', 'observe', '--cluster', 'batch', '--reason', 'a test');
    const shows = (word) => page.waitForFunction(
      (word) => [...document.querySelectorAll('main tr')].some((row) => row.innerText.includes('batch') && row.innerText.includes(word)), word);
    await shows('observe');
    await fleet.ask('mode', 'inherit', '--cluster', 'batch');
    await shows('auto');
  });

  // The thirteen questions, as far as no cluster is needed.
  await check('question: when will it run?', async () => {
    await fleet.ask('fault', 'add', 'slow', 'factor=40');
    await fleet.ask('demand', 'set', 'shop', 'web=250');
    const coming = async () => {
      const { rows } = await api('needs?cluster=shop&limit=50');
      for (const row of rows) {
        const found = await api(`explain/need?name=${row.data.key.long_id}`);
        if (found.data.need?.coming > 0 && found.data.need.expected) return row.data.key.id;
      }
      return null;
    };
    const need = await until('a machine on its way', coming, (found) => found !== null);
    await visit(`#/need/${need}`, '.story');
    const said = await text(page);
    must(/on its way/.test(said) && /expected (by )?\d\d:\d\d:\d\d/.test(said) && /seen\)/.test(said), said);
    await fleet.ask('fault', 'rm', '1');
  });
  await fleet.ask('demand', 'set', 'shop', 'web=3000');
  const short = await until('a need that is short', () => api('needs?unmet=1'), (found) => found.rows.some((row) => row.data.reason !== 'in_flight'));
  await check('question: why is it pending? who holds what I want, what would help', async () => {
    await visit('#/needs?unmet=1', '[role=table] .tr a');
    await page.locator('.tall .tr a').first().click();
    await page.waitForSelector('.story');
    const said = await text(page);
    must(/is (short|waiting|parked)/.test(said) && /wants/.test(said) && /considered/.test(said), said);
    must(/would help/.test(said), `nothing that would help: ${said}`);
    await page.waitForSelector('text=Who holds what it could use');
    must((await page.locator('.cli code').first().innerText()).startsWith('bigfleet explain need '), 'no command');
  });
  await check('question: why did it buy that machine?', async () => {
    const bought = await until('a machine that was bought', () => api('decisions?kind=provision&fate=begun&limit=5'), (found) => found.rows.length > 0);
    const { cycle, machine } = bought.rows[0].data;
    await visit(`#/decision/${cycle}/${machine}`, '.story');
    const said = await text(page);
    must(said.includes(machine) && /rule/.test(said) && /next best|no other would do/.test(said), said);
    await visit(`#/machine/${machine}`, '.life li');
    const life = await text(page);
    must(/why bought/.test(life) && /\$/.test(life), life);
  });
  await check('question: who preempted me?', async () => {
    // Somebody more important comes, and there is not enough for both.
    await fleet.ask('demand', 'set', 'batch', 'crunch=4000').catch(() => null);
    await fleet.ask('demand', 'set', 'ml', 'train=12').catch(() => null);
    const found = await until('a preemption', () => api('explain/preemption?limit=5'), (found) => found.data.preemptions?.length > 0);
    const one = found.data.preemptions[0];
    await visit('#/preemptions', '.told');
    const said = await text(page);
    must(/\d+ preemptions?, the newest first/.test(said), said);
    for (const word of ['taken from', 'for', 'grace', 'priority']) must(said.includes(word), `no ${word} in ${said}`);
    // And from the victim's side.
    await visit(`#/preemptions?machine=${encodeURIComponent(one.decision.machine)}`, '.told');
    must((await text(page)).includes(one.decision.machine), await text(page));
  });
  await check('question: what will this change cost?', async () => {
    await visit('#/whatif');
    await page.waitForFunction(() => document.querySelectorAll('.editor select option').length > 3);
    await page.locator('.editor select').nth(1).selectOption('zone-b');
    await page.locator('.editor button').click();
    await page.waitForSelector('.diff');
    const said = await text(page);
    must(/zone-b dies/.test(said) && /\$ an hour/.test(said) && /difference/.test(said), said);
    must(/e=/.test(page.url()), 'the address does not hold the question');
    // Shared as a link: a second visitor sees the same question.
    const other = await open(opened);
    await other.page.goto(page.url());
    await other.page.waitForSelector('.diff');
    must((await other.page.locator('.edits').innerText()).includes('zone-b dies'), 'the link does not carry the question');
    await other.context.close();
    // And what the hours after that would bring, by the simulator.
    await page.locator('.editor select').last().selectOption('6');
    await page.waitForSelector('.ahead');
    const ahead = await page.locator('.ahead').innerText();
    must(/\$ in all/.test(ahead) && /±/.test(ahead) && /unmet need-hours/.test(ahead), ahead);
    must((await page.locator('.cli code').first().innerText()).endsWith('--zone-down zone-b --for 6h'), 'the command asks for something else');
    must(/h=6/.test(page.url()), 'the address does not hold the hours');
  });
  await check('question: how do I stop it, now?', async () => {
    await visit('#/system', '.pause');
    await page.locator('.pause select').first().selectOption('shop');
    await page.locator('.pause .grow input').fill('a <b>hostile</b> "reason" & more');
    await page.locator('.pause button[type=submit]').click();
    await page.waitForSelector('.pauses li');
    const said = await page.locator('.pauses').innerText();
    must(said.includes('<b>hostile</b>') && said.includes('shop'), `shown as text: ${said}`);
    must((await page.locator('.pauses b').count()) === 0, 'a reason became markup');
    await page.waitForFunction(() => /PAUSED/.test(document.querySelector('header.top').innerText));
    const listed = await fleet.ask('get', 'rails', '-o', 'json');
    must(listed.includes('hostile'), 'the command line does not know the pause');
    await page.locator('.pauses button').click();
    await page.waitForFunction(() => /AUTO/.test(document.querySelector('header.top').innerText));
  });
  await check('question: is it safe to turn on? what the next cycle would do, the mode, the rails', async () => {
    const said = await text(page);
    must(/mode/.test(said) && /reclaim cap/.test(said) && /next cycle/i.test(said), said);
  });
  await check('question: how do I roll back? what differs, what cannot be undone, in which order', async () => {
    await visit('#/timeline', 'input[type=range]');
    await page.locator('.scrub input.short').fill('5');
    await page.keyboard.press('Enter');
    await page.waitForSelector('text=Clusters then');
    await page.locator('button', { hasText: 'Compare with now' }).click();
    await page.waitForSelector('h2:has-text("Going back to cycle 5")');
    await page.waitForSelector('text=actions were begun since');
    const said = await text(page);
    must(/Hold still/.test(said) && /bought/.test(said) && /\d+ (or more )?actions were begun since/.test(said), said);
  });
  await check('question: is the upgrade safe? what is recorded, and the replay that says so', async () => {
    await visit('#/system', 'text=Before an upgrade');
    const said = await text(page);
    must(/there is a record from cycle \d+ on to replay/.test(said) && /0 differing cycles: it is safe/.test(said), said);
  });
  await check('Fleet: utilisation by resource, of the fleet and of each cluster', async () => {
    await visit('#/fleet', '.use');
    const { summary } = (await api('hello')).now;
    const cpu = summary.use.find((one) => one.resource === 'cpu');
    must(cpu && cpu.provided > 0 && cpu.asked > 0, JSON.stringify(summary.use));
    must(summary.lanes.some((lane) => lane.use.some((one) => one.resource === 'memory' && one.provided > 0)), 'no cluster has any');
    const said = await page.locator('.use').innerText();
    must(/cpu/.test(said) && /memory/.test(said) && /\d+ %/.test(said), said);
    const together = summary.lanes.reduce((sum, lane) => sum + (lane.use.find((one) => one.resource === 'cpu')?.provided ?? 0), 0);
    must(Math.abs(together - cpu.provided) < 1e-6, `clusters have ${together} cores together, the fleet ${cpu.provided}`);
  });
  await check('what is withheld again and again is one row with a count, and no decision is lost', async () => {
    await fleet.ask('pause', '--kind', 'reclaim', '--reason', 'a test', '--for', '2h');
    await fleet.ask('demand', 'set', 'shop', 'web=10');
    const folded = await until('something that was withheld often', () => api('decisions?fate=paused&limit=50'), (found) => found.rows.some((row) => row.data.times > 2));
    await fleet.ask('resume', '--kind', 'reclaim');
    const one = folded.rows.find((row) => row.data.times > 2);
    must(/withheld: paused \d+ times since cycle \d+$/.test(one.said), one.said);
    must(folded.groups.reduce((sum, group) => sum + group.count, 0) === folded.rows.length, 'rows and groups differ in their counts');
    const every = await api(`decisions?fate=paused&machine=${one.data.machine}&to=${one.data.cycle}&limit=2000&every=1`);
    must(every.rows.length >= one.data.times, `${every.rows.length} of ${one.data.times}`);
    await visit(`#/machine/${one.data.machine}`, '.life li');
    must(/ times since cycle /.test(await page.locator('.life').innerText()), await page.locator('.life').innerText());
  });
  await check('System: how long cycles take', async () => {
    await visit('#/system', 'text=half of the last');
    const times = (await api('hello')).now.links[0].cycle_millis;
    must(times && times[0] > 10 && times[2] > 0 && times[3] >= times[2], JSON.stringify(times));
    must(/\d ms/.test(await text(page)), 'no time of a cycle');
  });
  await check('question: why is this idle machine still here?', async () => {
    await fleet.ask('demand', 'set', 'shop', 'web=10');
    const idle = await until('an idle machine', () => api('machines?state=idle&limit=5'), (found) => found.total > 0);
    await visit(`#/machine/${idle.rows[0].data.id}`, '.story');
    must(/fixed capacity and never given back|held for .* in case it is wanted again/.test(await text(page)), await text(page));
  });
  await check('question: where does the money go?', async () => {
    await visit('#/cost', 'table');
    const said = await text(page);
    must(/used/.test(said) && /above demand|idle/.test(said) && /shop/.test(said) && /\$/.test(said), said);
    await page.waitForSelector('text=protection');
  });
  await check('question: is my declared penalty sane?', async () => {
    await visit('#/policy', 'table');
    const said = await text(page);
    must(/interruption/i.test(said) && /batch/.test(said), said);
    await page.waitForSelector('text=Looked at');
    const lint = await fleet.ask('lint', '--json').catch((error) => error.message);
    const codes = await page.locator('.pill').allInnerTexts();
    for (const code of codes.filter((text) => /^BF\d+/.test(text))) must(lint.includes(code), `the command line does not know ${code}`);
  });
  await check('question: is the provider telling the truth?', async () => {
    await visit('#/system', 'text=Providers');
    await page.waitForSelector('text=prices and states are');
    must(/old, said by the provider/.test(await text(page)), await text(page));
    await page.waitForSelector('text=lost/promised');
  });

  await check('Timeline: a recorded cycle as it was, and two compared', async () => {
    await visit('#/timeline', 'input[type=range]');
    await page.locator('.scrub input.short').fill('5');
    await page.keyboard.press('Enter');
    await page.waitForSelector('text=Clusters then');
    must((await page.locator('.banner').innerText()).includes('You are looking at'), 'it does not say that this is not now');
    await page.locator('button', { hasText: 'Compare with now' }).click();
    await page.waitForSelector('text=against cycle');
    must((await text(page)).includes('bigfleet diff '), 'no command for the comparison');
    await page.waitForSelector('h3:has-text("Prices")');
    await page.locator('h1').click();
    await page.keyboard.press('l');
    await page.waitForFunction(() => !document.querySelector('.banner'));
  });
  await check('Machines: the server turns the pages', async () => {
    await visit('#/machines', '.tall .tr a');
    const { total } = await api('machines?limit=1');
    must((await page.locator('.count').innerText()).startsWith(String(total)), 'the count differs from the server');
    must((await page.locator('.tall .tr').count()) < 60, 'more rows were drawn than are seen');
    const last = await api(`machines?limit=1&skip=${total - 1}`);
    await page.locator('.tbody').evaluate((box) => box.scrollTo(0, box.scrollHeight));
    await page.waitForSelector(`text=${last.rows[0].data.id}`);
  });
  await check('the keyboard is enough', async () => {
    await visit('#/fleet', '.tiles');
    await page.keyboard.press('n');
    await page.waitForSelector('h1:text("Needs")');
    await page.keyboard.press('s');
    await page.waitForSelector('h1:text("System")');
    await page.reload();
    await page.waitForSelector('.tiles, .pause');
    await page.keyboard.press('Tab');
    const focused = await page.evaluate(() => document.activeElement?.className);
    must(focused === 'skip', `the first stop skips to the content, not ${focused}`);
  });
  await check('other sites cannot make it act, and names that point here are refused', async () => {
    const refused = await page.evaluate(async () => (await fetch('/api/pause', { method: 'POST', body: '{"reason":"x"}' })).status);
    must(refused === 403, `a plain form was answered with ${refused}`);
    const hostile = await page.request.get(`${fleet.url}/api/hello`, { headers: { host: 'evil.example' } });
    must(hostile.status() === 421, `a foreign name was answered with ${hostile.status()}`);
    const policy = (await page.request.get(fleet.url)).headers()['content-security-policy'];
    must(policy.includes("default-src 'none'") && !policy.includes('unsafe'), policy);
  });

  const need = short.rows[0].data.key.id;
  const machine = (await api('machines?state=configured&limit=1')).rows[0].data.id;
  const screens = {
    fleet: '#/fleet', needs: '#/needs', need: `#/need/${need}`, machines: '#/machines', machine: `#/machine/${machine}`,
    timeline: '#/timeline', past: '#/timeline?at=9&against=4',
    whatif: `#/whatif?e=${encodeURIComponent('[{"edit":"remove_machines","filter":{"zones":["zone-b"]}}]')}`,
    cost: '#/cost', policy: '#/policy', system: '#/system', cluster: '#/cluster/ml', preemptions: '#/preemptions', nothing: '#/nothing/here',
  };
  for (const [width, dark] of [[1280, false], [390, true]]) {
    const seen = await open(opened, { width, height: 844, dark });
    await seen.page.goto(fleet.url);
    await seen.page.waitForSelector('.tiles');
    for (const [name, hash] of Object.entries(screens)) {
      await check(`${name} at ${width} px ${dark ? 'dark' : 'light'}: nothing cut off, accessible`, async () => {
        await seen.page.goto(`${fleet.url}/${hash}`);
        await seen.page.waitForFunction(() => document.querySelector('main')?.innerText.trim() && !document.querySelector('main .loading'));
        const cut = await clipped(seen.page);
        must(cut.length === 0, `cut off: ${cut.join(' | ')}`);
        const session = await seen.context.newCDPSession(seen.page);
        await session.send('Runtime.evaluate', { expression: axe });
        const { result } = await session.send('Runtime.evaluate', {
          expression: `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] }).then((found) => JSON.stringify(found.violations.map((one) => one.id + ': ' + one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120) + ' ' + (node.any[0]?.message ?? node.all[0]?.message ?? node.none[0]?.message ?? '')).join(' | '))))`,
          awaitPromise: true,
          returnByValue: true,
        });
        const violations = JSON.parse(result.value);
        must(violations.length === 0, violations.join('\n'));
      });
    }
    must(seen.errors.length === 0, seen.errors.join('\n'));
    await seen.context.close();
  }

  await check('a server that goes away is said so, and the page comes back by itself', async () => {
    await visit('#/fleet', '.tiles');
    await page.context().setOffline(true);
    await page.evaluate(() => dispatchEvent(new Event('offline')));
    fleet.child.kill('SIGSTOP');
    await page.waitForSelector('.banner.warn, .banner.bad');
    must(await page.locator('.tiles').isVisible(), 'what was last heard is gone');
    fleet.child.kill('SIGCONT');
    await page.context().setOffline(false);
    await page.waitForFunction(() => !document.querySelector('.banner'));
  });
  await check('no error on the page in all that time', async () => must(errors.length === 0, errors.join('\n')));
} finally {
  await close();
  await fleet.stop();
}
finish();
