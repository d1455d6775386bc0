// The newest state, from one stream for the whole page. It comes back by itself.
import { useEffect, useState } from 'preact/hooks';
import { Refused, get } from './api';
import type { Columns, Group, Hello, State, Summary } from './types';

const FEED = 300;
const STALE_MS = 12_000;

export interface Live {
  hello: Hello | null;
  state: State | null;
  feed: Group[];
  columns: Columns | null;
  /** connecting: nothing was ever heard; live; stale: silent for too long; gone: the server cannot be reached. */
  link: 'connecting' | 'live' | 'stale' | 'gone' | 'sign-in';
  since: number;
}

export let live: Live = { hello: null, state: null, feed: [], columns: null, link: 'connecting', since: Date.now() };

const listeners = new Set<() => void>();
let frame = 0;

function set(change: Partial<Live>): void {
  if (change.link && change.link !== live.link) change.since = Date.now();
  live = { ...live, ...change };
  // Draw at most once a frame, and not at all while nobody looks.
  frame ||= requestAnimationFrame(() => {
    frame = 0;
    for (const listener of listeners) listener();
  });
}

export function useLive(): Live {
  const [, draw] = useState(0);
  useEffect(() => {
    const listener = () => draw((n) => n + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return live;
}

/** What share of a resource of bound machines is asked for, in hundredths. */
function used(summary: Summary, resource: string): number | null {
  const line = (summary.use ?? []).find((one) => one.resource === resource);
  return line && line.provided > 0 ? Math.round((1000 * line.asked) / line.provided) / 10 : null;
}

/** Adds the newest moment to the columns; the server keeps the long ones. */
function extended(columns: Columns | null, state: State): Columns | null {
  const now = state.summary?.as_of?.now;
  if (!columns || !state.summary || !now) return columns;
  const time = Date.parse(now) / 1000;
  const last = columns.time.at(-1);
  if (last !== undefined && time <= last) return columns;
  const s = state.summary;
  const begun = state.feed.reduce((sum, group) => sum + (group.withheld ? 0 : group.count), 0);
  const add = (list: number[], value: number) => [...list.slice(-2000), value];
  return {
    time: add(columns.time, time),
    usd: add(columns.usd, s.usd_per_hour),
    idle_usd: add(columns.idle_usd, s.idle_usd_per_hour),
    unmet: add(columns.unmet, s.unmet),
    short: add(columns.short, s.short),
    bound: add(columns.bound, s.lanes.reduce((sum, lane) => sum + lane.machines, 0)),
    actions: add(columns.actions, begun),
    cpu: [...columns.cpu.slice(-2000), used(s, 'cpu')],
    memory: [...columns.memory.slice(-2000), used(s, 'memory')],
    withheld: add(columns.withheld, s.withheld.reduce((sum, count) => sum + count.actions, 0)),
  };
}

function take(state: State): void {
  const whole = state.history !== undefined;
  const first = state.history?.[0]?.columns ?? null;
  const columns = whole ? summed(state.history!) ?? first : extended(live.columns, state);
  const newest = [...state.feed].reverse();
  const feed = whole ? newest : [...newest, ...live.feed];
  set({ state, columns, feed: feed.slice(0, FEED), link: 'live' });
}

/** One shard's history as it is; of several the first, whose clock the page shows. */
function summed(history: { columns: Columns }[]): Columns | null {
  return history.length === 1 ? history[0]!.columns : null;
}

let source: EventSource | null = null;
let pause = 500;
let heard = 0;

function listen(): void {
  source?.close();
  source = new EventSource('/api/live');
  source.onmessage = (event) => {
    heard = Date.now();
    pause = 500;
    take(JSON.parse(event.data as string) as State);
  };
  source.onerror = () => {
    source?.close();
    set({ link: 'gone' });
    setTimeout(() => void begin(), pause);
    pause = Math.min(pause * 2, 5_000);
  };
}

/** Asks who is there, draws that, and listens. */
export async function begin(): Promise<void> {
  try {
    const hello = await get<Hello>('hello');
    heard = Date.now();
    set({ hello });
    take(hello.now);
    listen();
  } catch (error) {
    if (error instanceof Refused && error.status === 401) {
      set({ link: 'sign-in' });
      return;
    }
    set({ link: 'gone' });
    setTimeout(() => void begin(), pause);
    pause = Math.min(pause * 2, 5_000);
  }
}

setInterval(() => {
  if (live.link === 'live' && Date.now() - heard > STALE_MS) set({ link: 'stale' });
}, 1_000);
