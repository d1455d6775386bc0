// How long the page takes in front of many machines: node tests/measure.mjs [MACHINES] [ROUNDS]
// A simulated provider of that many slots, a real shard, the page, and Chromium. Takes some minutes for 500,000.
import { connect, createServer } from 'node:net';
import { browser, open, start } from './lib.mjs';

const machines = process.argv[2] ?? '500000';
const rounds = Number(process.argv[3] ?? '20');
const free = () => new Promise((resolve) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});
const answers = (port) => new Promise((resolve) => {
  const socket = connect(port, '127.0.0.1', () => { socket.destroy(); resolve(true); });
  socket.on('error', () => resolve(false));
});
const median = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)];
const say = (name, all, unit = 'ms') => console.log(`${name.padEnd(44)} median ${median(all).toFixed(1)} ${unit}   worst ${Math.max(...all).toFixed(1)} ${unit}`);

const [cloud, grpc] = [await free(), await free()];
const provider = await start(['provider', 'sim', '--addr', `127.0.0.1:${cloud}`, '--machines', machines, '--seed', '42', '--http', 'none', '--admin', 'none'], null);
while (!(await answers(cloud))) await new Promise((resolve) => setTimeout(resolve, 200));
const shard = await start(['shard', '--memory-only', '--provider', `sim=http://127.0.0.1:${cloud}`, '--listen', `127.0.0.1:${grpc}`, '--metrics', 'none', '--web', '127.0.0.1:0', '--log-filter', 'error'], /^page on (\S+)/);
const url = shard.match[1];
const { opened, close } = await browser();
try {
  const { page } = await open(opened);
  await page.goto(url);
  const api = (path) => page.evaluate(async (path) => (await fetch(path)).json(), path);
  const begun = Date.now();
  for (;;) {
    const { now } = await api('/api/hello');
    const known = now.summary?.providers.reduce((sum, one) => sum + one.machines, 0) ?? 0;
    if (known >= Number(machines)) break;
    if (Date.now() - begun > 900_000) throw new Error(`only ${known} machines after 15 min`);
    await page.waitForTimeout(2000);
  }
  await page.waitForTimeout(3000);
  const took = { answer: [], paint: [], whole: [], machines: [], deep: [], bytes: [], rows: [] };
  for (let n = 0; n < rounds; n++) {
    const seen = await open(opened);
    const sent = [];
    seen.page.on('response', async (response) => {
      if (response.url().includes('/api/')) sent.push(response);
    });
    await seen.page.addInitScript(() => {
      new MutationObserver(() => {
        if (!window.__drawn && document.querySelector('.supply')) {
          window.__drawn = -1;
          requestAnimationFrame(() => setTimeout(() => (window.__drawn = performance.now())));
        }
      }).observe(document, { childList: true, subtree: true });
    });
    await seen.page.goto(url);
    await seen.page.waitForFunction(() => window.__drawn > 0);
    const timing = await seen.page.evaluate(() => {
      const hello = performance.getEntriesByName(`${location.origin}/api/hello`)[0];
      return { drawn: window.__drawn, answer: hello.responseEnd - hello.requestStart, from: hello.requestStart, bytes: hello.transferSize };
    });
    took.answer.push(timing.answer);
    took.paint.push(timing.drawn - timing.from);
    took.whole.push(timing.drawn);
    took.bytes.push(timing.bytes);
    const ask = async (path) => seen.page.evaluate(async (path) => {
      const from = performance.now();
      const rows = (await (await fetch(path)).json()).rows.length;
      return [performance.now() - from, rows];
    }, path);
    const [first, rows] = await ask('/api/machines?limit=100');
    took.machines.push(first);
    took.rows.push(rows);
    took.deep.push((await ask(`/api/machines?limit=100&skip=${Math.floor(Number(machines) * 0.9)}`))[0]);
    await seen.context.close();
  }
  console.log(`${machines} machines, ${rounds} rounds`);
  say('Fleet: answer of the server', took.answer);
  say('Fleet: asking until painted', took.paint);
  say('Fleet: from nothing (page, script, answer, paint)', took.whole);
  say('Fleet: bytes of the answer', took.bytes, 'bytes');
  say('Machines: the first 100 rows', took.machines);
  say('Machines: 100 rows at nine tenths', took.deep);
  // Scrolling: frames while a list of all machines is dragged from end to end.
  await page.goto(`${url}/#/machines`);
  await page.waitForSelector('.tall .tr a');
  const frames = await page.evaluate(() => new Promise((resolve) => {
    const box = document.querySelector('.tbody');
    const gaps = [];
    let [last, n] = [performance.now(), 0];
    const step = (now) => {
      gaps.push(now - last);
      last = now;
      box.scrollTop = (box.scrollHeight * ++n) / 120;
      n < 120 ? requestAnimationFrame(step) : resolve(gaps);
    };
    requestAnimationFrame(step);
  }));
  say('Machines: time between frames while scrolling', frames.slice(1));
} finally {
  await close();
  await shard.stop();
  await provider.stop();
}
