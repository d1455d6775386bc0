// What the browser tests share: a fleet that lives, a browser that looks at it, and honest failures.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

export const SEED = '42';
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const FLAGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--font-render-hinting=none', '--force-color-profile=srgb',
];

/** A program of ours that runs until it is told to stop. `line` is what to wait for. */
export async function start(args, line, env = {}) {
  const home = mkdtempSync(join(tmpdir(), 'bigfleet-web-'));
  const child = spawn(process.env.BIGFLEET, args, {
    stdio: ['ignore', 'pipe', line ? 'inherit' : 'ignore'],
    env: { ...process.env, TZ: 'UTC', XDG_STATE_HOME: home, XDG_CONFIG_HOME: home, ...env },
  });
  const lines = [];
  const said = createInterface({ input: child.stdout });
  const found = new Promise((resolve, reject) => {
    said.on('line', (text) => {
      lines.push(text);
      const match = line?.exec(text);
      if (match) resolve(match);
    });
    child.on('exit', (code) => reject(new Error(`${args.join(' ')} ended with ${code}: ${lines.join('\n')}`)));
  });
  // Who waits for no line asks in another way.
  if (!line) found.catch(() => {});
  const match = line ? await found : null;
  const stop = async (signal = 'SIGINT') => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill(signal);
      await once(child, 'exit');
    }
    rmSync(home, { recursive: true, force: true });
  };
  const ask = (...more) =>
    new Promise((resolve, reject) => {
      const asked = spawn(process.env.BIGFLEET, more, { env: { ...process.env, TZ: 'UTC', XDG_STATE_HOME: home, XDG_CONFIG_HOME: home } });
      let [out, err] = ['', ''];
      asked.stdout.on('data', (data) => (out += data));
      asked.stderr.on('data', (data) => (err += data));
      asked.on('exit', (code) => (code === 0 ? resolve(out) : reject(new Error(`bigfleet ${more.join(' ')}: ${code} ${err}`))));
    });
  return { match, lines, stop, ask, child };
}

/** The simulated fleet with its page. */
export async function up(clock = '60', more = []) {
  const fleet = await start(['up', '--port', '0', '--no-view', '--seed', SEED, '--clock', clock, ...more], /^page +(http\S+)/);
  return { ...fleet, url: fleet.match[1] };
}

export async function browser() {
  const profile = mkdtempSync(join(tmpdir(), 'bigfleet-chromium-'));
  const opened = await chromium.launch({ executablePath: CHROMIUM, headless: true, args: FLAGS, env: { ...process.env, TZ: 'UTC', HOME: profile } });
  return { opened, close: async () => { await opened.close(); rmSync(profile, { recursive: true, force: true }); } };
}

/** A page whose every error is a failure of the test. */
export async function open(opened, { width = 1280, height = 900, dark = false } = {}) {
  const context = await opened.newContext({
    viewport: { width, height },
    colorScheme: dark ? 'dark' : 'light',
    timezoneId: 'UTC',
    locale: 'en-US',
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const errors = [];
  page.on('pageerror', (error) => errors.push(`error on the page: ${error.message}`));
  page.on('console', (message) => {
    // A question that is refused is shown on the page; the browser also logs it.
    if (message.type() === 'error' && !/Failed to load resource/.test(message.text())) errors.push(`console: ${message.text()}`);
  });
  return { page, context, errors };
}

/** Text that is cut off: wider than its box, without a way to see the rest. */
export async function clipped(page) {
  return page.evaluate(() => {
    const found = [];
    const shown = (element) => {
      const box = element.getBoundingClientRect();
      return box.width > 1 && box.height > 1 && getComputedStyle(element).visibility !== 'hidden';
    };
    if (document.documentElement.scrollWidth > innerWidth + 1) {
      found.push(`the page is ${document.documentElement.scrollWidth} px wide in a window of ${innerWidth}`);
    }
    for (const element of document.querySelectorAll('h1,h2,h3,p,a,button,label,dt,dd,th,td,li,span,code,time,strong,[role=cell],[role=columnheader]')) {
      if (!shown(element) || !element.textContent.trim() || element.closest('.hidden, .skip, [aria-hidden=true]')) continue;
      const style = getComputedStyle(element);
      const cut = style.overflowX !== 'visible' && element.scrollWidth > element.clientWidth + 1;
      // A row of a table may cut a text whose whole is its title or one click away.
      if (cut && !element.closest('.cut, [title]') && !element.querySelector('.cut') && style.overflowX === 'hidden') {
        found.push(`${element.tagName}.${element.className}: ${element.textContent.trim().slice(0, 60)}`);
      }
      // Children that stick out of the window and of every scrollable ancestor.
      const box = element.getBoundingClientRect();
      if (box.right > innerWidth + 1) {
        let at = element.parentElement;
        while (at && !/(auto|scroll|hidden)/.test(getComputedStyle(at).overflowX)) at = at.parentElement;
        if (!at || at === document.documentElement || at === document.body) found.push(`sticks out: ${element.tagName} ${element.textContent.trim().slice(0, 60)}`);
      }
    }
    return found.slice(0, 10);
  });
}

let failures = 0;
let passed = 0;
/** One named check. A failure says what and goes on. */
export async function check(name, work) {
  const begun = Date.now();
  try {
    await work();
    passed += 1;
    console.log(`  ok    ${name}  (${Date.now() - begun} ms)`);
  } catch (error) {
    failures += 1;
    console.log(`  FAIL  ${name}\n        ${String(error?.stack ?? error).replaceAll('\n', '\n        ')}`);
  }
}

export function finish() {
  console.log(`${passed} passed, ${failures} failed`);
  process.exitCode = failures ? 1 : 0;
}

export function must(condition, message) {
  if (!condition) throw new Error(message);
}
