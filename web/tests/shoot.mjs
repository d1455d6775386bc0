// Looks at every screen of a living fleet and saves what it sees: node tests/shoot.mjs DIR [URL]
import { mkdirSync } from 'node:fs';
import { browser, open, up } from './lib.mjs';
const dir = process.argv[2];
mkdirSync(dir, { recursive: true });
const fleet = process.argv[3] ? { url: process.argv[3], stop: async () => {} } : await up('60');
const { opened, close } = await browser();
const only = process.argv[4]?.split(',');
try {
  for (const [width, dark] of [[1280, false], [1280, true], [390, false]]) {
    const { page, errors } = await open(opened, { width, height: width === 390 ? 844 : 900, dark });
    await page.goto(fleet.url);
    await page.waitForSelector('.tiles');
    await page.waitForTimeout(1500);
    const need = await page.evaluate(async () => (await (await fetch('/api/needs?limit=1')).json()).rows[0].data.key.id);
    const machine = await page.evaluate(async () => (await (await fetch('/api/machines?state=configured&limit=1')).json()).rows[0]?.data.id);
    const places = { fleet: '#/fleet', needs: '#/needs', need: `#/need/${need}`, machines: '#/machines', machine: `#/machine/${machine}`, timeline: '#/timeline', past: '#/timeline?at=20&against=5', whatif: `#/whatif?e=${encodeURIComponent(JSON.stringify([{ edit: 'remove_machines', filter: { zones: ['zone-b'] } }]))}`, cost: '#/cost', policy: '#/policy', system: '#/system', cluster: '#/cluster/ml' };
    for (const [name, hash] of Object.entries(places)) {
      if (only && !only.includes(name)) continue;
      await page.goto(`${fleet.url}/${hash}`);
      await page.waitForTimeout(1200);
      await page.screenshot({ path: `${dir}/${name}-${width}${dark ? '-dark' : ''}.png`, fullPage: width === 390 });
    }
    console.log(errors);
  }
} finally {
  await close();
  await fleet.stop();
}
