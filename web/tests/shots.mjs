// The pictures in docs/images: every screen, light and dark, of the fleet of one seed.
//   node tests/shots.mjs record    looks at a living fleet, keeps what the server answered and the pictures
//   node tests/shots.mjs           draws the kept answers again and compares with the pictures
// What a living fleet shows differs from second to second; the same answers must give the same picture.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import pixelmatch from 'pixelmatch';
import { PNG } from 'pngjs';
import { browser, check, finish, must, open, up } from './lib.mjs';
import { shrink } from './shrink.mjs';

const recording = process.argv[2] === 'record';
const IMAGES = new URL('../../docs/images/', import.meta.url).pathname;
const KEPT = new URL('./answers.json.gz', import.meta.url).pathname;
/** Of all pixels; fonts are drawn a little differently on every machine. */
const TOLERANCE = 0.03;

const answers = recording ? {} : JSON.parse(gunzipSync(readFileSync(KEPT)));
// A slow clock: all screens are asked within a simulated minute or two, and say nearly the same time.
const fleet = recording ? await up('10') : null;
const { opened, close } = await browser();
const origin = fleet?.url ?? 'http://127.0.0.1:7700';

/** Answers from what was kept, and serves the page itself from what is committed. */
async function replay(page) {
  // A stream that says nothing: the first answer holds everything, and time stands still.
  await page.addInitScript(() => { window.EventSource = class { close() {} }; });
  const kinds = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml', html: 'text/html' };
  await page.route('**/*', async (route) => {
    const url = new URL(route.request().url());
    if (!url.pathname.startsWith('/api/')) {
      const file = url.pathname === '/' ? 'index.html' : url.pathname.slice(1);
      const path = new URL(`../../crates/web/assets/${file}`, import.meta.url).pathname;
      return existsSync(path) ? route.fulfill({ contentType: kinds[file.split('.').pop()], body: readFileSync(path) }) : route.fulfill({ status: 404 });
    }
    const kept = answers[url.pathname + url.search];
    return kept ? route.fulfill({ json: kept }) : route.fulfill({ status: 404, json: { error: { code: 'not_found', message: `not kept: ${url.pathname}${url.search}` } } });
  });
}

let places;
try {
  if (recording) {
    const { page } = await open(opened);
    await page.goto(origin);
    const api = (path) => page.evaluate(async (path) => (await fetch(path)).json(), path);
    await fleet.ask('demand', 'wait', '--for', '3m');
    await fleet.ask('fault', 'add', 'zone-outage', 'zone-b', '--for', '2h');
    await fleet.ask('demand', 'set', 'shop', 'web=700');
    for (let n = 0; n < 100; n++) {
      if ((await api('/api/needs?unmet=1')).rows.some((row) => row.data.reason !== 'in_flight')) break;
      await page.waitForTimeout(500);
    }
    await page.waitForTimeout(60_000);
    const short = (await api('/api/needs?unmet=1')).rows.find((row) => row.data.reason !== 'in_flight') ?? (await api('/api/needs')).rows[0];
    const bought = (await api('/api/decisions?kind=provision&fate=begun&limit=20')).rows[0].data;
    const cycle = (await api('/api/hello')).now.summary.as_of.cycle;
    places = {
      fleet: '#/fleet', needs: '#/needs', need: `#/need/${short.data.key.id}`, machines: '#/machines', machine: `#/machine/${bought.machine}`,
      decision: `#/decision/${bought.cycle}/${bought.machine}`, timeline: `#/timeline?at=${cycle - 2}&against=4`,
      whatif: `#/whatif?e=${encodeURIComponent('[{"edit":"remove_machines","filter":{"zones":["zone-c"]}},{"edit":"set_price","filter":{"capacity_types":["spot"]},"factor":2}]')}`,
      cost: '#/cost', policy: '#/policy', system: '#/system',
    };
    page.on('response', async (response) => {
      const url = new URL(response.url());
      if (!url.pathname.startsWith('/api/') || url.pathname === '/api/live') return;
      answers[url.pathname + url.search] = await response.json().catch(() => undefined);
    });
    for (const hash of Object.values(places)) {
      await page.goto(`${origin}/${hash}`);
      await page.waitForTimeout(1500);
    }
    answers['/api/hello'] = await api('/api/hello');
    answers.places = places;
    answers.now = answers['/api/hello'].now.summary.as_of.now;
    await page.context().close();
    await fleet.stop();
    writeFileSync(KEPT, gzipSync(JSON.stringify(answers), { level: 9 }));
    mkdirSync(IMAGES, { recursive: true });
  }
  places = answers.places;
  for (const dark of [false, true]) {
    const { page, errors } = await open(opened, { dark, height: 860 });
    await page.clock.setFixedTime(new Date(answers.now));
    await replay(page);
    for (const [name, hash] of Object.entries(places)) {
      const file = `${IMAGES}${name}-${dark ? 'dark' : 'light'}.png`;
      await check(`${name} ${dark ? 'dark' : 'light'}`, async () => {
        await page.goto(`${origin}/${hash}`);
        await page.waitForFunction(() => document.querySelector('main')?.innerText.trim() && !document.querySelector('main .loading'));
        await page.waitForTimeout(300);
        const seen = PNG.sync.read(await page.screenshot());
        const said = await page.locator('main').innerText();
        must(!said.includes('not kept:'), `a question that was not kept: ${/not kept: \S+/.exec(said)?.[0]}; run scripts/web shots record`);
        if (recording) {
          writeFileSync(file, shrink(seen));
          return;
        }
        const kept = PNG.sync.read(readFileSync(file));
        must(kept.width === seen.width && kept.height === seen.height, 'another size');
        const differ = pixelmatch(kept.data, seen.data, null, kept.width, kept.height, { threshold: 0.2 });
        const share = differ / (kept.width * kept.height);
        must(share <= TOLERANCE, `${(100 * share).toFixed(2)} % of the pixels differ from docs/images/${name}-${dark ? 'dark' : 'light'}.png; look at it, and if it is right run scripts/web shots record`);
      });
    }
    must(errors.length === 0, errors.join('\n'));
    await page.context().close();
  }
} finally {
  await close();
  if (fleet) await fleet.stop();
}
finish();
