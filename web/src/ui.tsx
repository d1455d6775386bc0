// The few building blocks all screens share.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Refused } from './api';
import { int } from './format';
import { href } from './router';
import type { Part, Tone } from './types';

/** An answer that is being asked for: honest about waiting, failing and being old. */
export interface Asked<T> {
  data: T | null;
  error: Error | null;
  loading: boolean;
  again: () => void;
}

/** Asks when `key` changes, and every `every` milliseconds while somebody looks. */
export function useAsk<T>(ask: (signal: AbortSignal) => Promise<T>, key: string, every = 0): Asked<T> {
  const [state, set] = useState<{ key: string; data: T | null; error: Error | null; loading: boolean }>({
    key,
    data: null,
    error: null,
    loading: true,
  });
  const [round, again] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    set((old) => ({ key, data: old.key === key ? old.data : null, error: null, loading: true }));
    const run = () =>
      ask(stop.signal).then(
        (data) => {
          if (stop.signal.aborted) return;
          set({ key, data, error: null, loading: false });
          if (every) timer = window.setTimeout(tick, every);
        },
        (error: Error) => {
          if (stop.signal.aborted) return;
          set((old) => ({ ...old, error, loading: false }));
          if (every) timer = window.setTimeout(tick, Math.max(every, 3000));
        },
      );
    const tick = () => {
      if (document.hidden) timer = window.setTimeout(tick, every);
      else void run();
    };
    void run();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [key, round]);
  return { data: state.key === key ? state.data : null, error: state.error, loading: state.loading, again: () => again((n) => n + 1) };
}

/** Shows an answer, or why there is none. */
export function Ask<T>(props: { of: Asked<T>; what: string; children: (data: T) => ComponentChildren }): JSX.Element {
  const { data, error, loading } = props.of;
  if (data !== null) {
    return (
      <>
        {error && <p class="note warn" role="status">Not refreshed: {error.message}. What you see may be old.</p>}
        {props.children(data)}
      </>
    );
  }
  if (error) {
    return (
      <div class="empty" role="alert">
        <strong>{error instanceof Refused && error.code === 'not_found' ? `No such ${props.what}.` : `Cannot show ${props.what}.`}</strong>
        <p>{error.message}</p>
        <button onClick={props.of.again}>Try again</button>
      </div>
    );
  }
  return <p class="loading" aria-busy={loading}>Asking for {props.what}…</p>;
}

export const Empty = (props: { children: ComponentChildren }) => <p class="empty">{props.children}</p>;

/** The command that gives the same answer, ready to be copied. */
export function Cli(props: { cmd: string }): JSX.Element {
  const [copied, set] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(props.cmd);
      set(true);
      setTimeout(() => set(false), 1500);
    } catch {
      // Without the right to the clipboard the text can still be selected.
    }
  };
  return (
    <div class="cli">
      <code title="The same answer on the command line">{props.cmd}</code>
      <button class="small" onClick={() => void copy()} aria-label={`Copy the command ${props.cmd}`}>
        {copied ? 'Copied' : 'Copy'}
      </button>
    </div>
  );
}

export function Head(props: { title: string; cmd?: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="head">
      <h1>{props.title}</h1>
      {props.children}
      {props.cmd && <Cli cmd={props.cmd} />}
    </div>
  );
}

export function Card(props: { title?: string; aside?: ComponentChildren; class?: string; children: ComponentChildren }): JSX.Element {
  return (
    <section class={`card ${props.class ?? ''}`}>
      {props.title && (
        <header>
          <h2>{props.title}</h2>
          {props.aside}
        </header>
      )}
      {props.children}
    </section>
  );
}

export const Pill = (props: { tone?: Tone | 'info' | undefined; children: ComponentChildren; title?: string | undefined }) => (
  <span class={`pill ${props.tone ?? 'plain'}`} title={props.title}>
    {props.children}
  </span>
);

/** Names in an answer that can be asked about: text → address. */
export function namesIn(data: unknown): Map<string, string> {
  const names = new Map<string, string>();
  const walk = (value: unknown, depth: number): void => {
    if (depth > 8 || value === null || typeof value !== 'object') return;
    if (Array.isArray(value)) {
      value.slice(0, 200).forEach((one) => walk(one, depth + 1));
      return;
    }
    const all = value as Record<string, unknown>;
    if (typeof all.long_id === 'string' && typeof all.id === 'string') names.set(all.id, href(['need', all.id]));
    else if (typeof all.id === 'string' && 'instance_type' in all) names.set(all.id, href(['machine', all.id]));
    if (typeof all.machine === 'string' && all.machine) names.set(all.machine, href(['machine', all.machine]));
    for (const key of ['credited', 'acquired', 'in_flight', 'victims']) {
      const list = all[key];
      if (Array.isArray(list)) list.forEach((id) => typeof id === 'string' && names.set(id, href(['machine', id])));
    }
    if (typeof all.cheapest === 'string' && all.cheapest) names.set(all.cheapest, href(['machine', all.cheapest]));
    Object.values(all).forEach((one) => walk(one, depth + 1));
  };
  walk(data, 0);
  return names;
}

/** Text in which known names are links. Everything is text: nothing from outside becomes markup. */
export function Linked(props: { text: string; names: Map<string, string> }): JSX.Element {
  const parts = props.text.split(/([A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9])/);
  return (
    <>
      {parts.map((part) => {
        const to = props.names.get(part);
        return to ? <a href={to}>{part}</a> : part;
      })}
    </>
  );
}

/** An explanation: the same sentences the terminal shows. */
export function Story(props: { parts: Part[]; data: unknown }): JSX.Element {
  const names = namesIn(props.data);
  const blocks: JSX.Element[] = [];
  let rows: JSX.Element[] = [];
  let last = '';
  const flush = () => {
    if (rows.length) blocks.push(<dl class="story">{rows}</dl>);
    rows = [];
    last = '';
  };
  props.parts.forEach((part) => {
    if (part.part === 'heading') {
      flush();
      blocks.push(
        <p class={`say ${part.tone}`}>
          <Linked text={part.text} names={names} />
        </p>,
      );
      return;
    }
    const body =
      part.part === 'said' ? (
        <Linked text={part.text} names={names} />
      ) : (
        <table class="plain">
          <tbody>
            {part.rows.map((row) => (
              <tr>
                {row.map((text, at) => (
                  <td class={part.right.includes(at) ? 'num' : ''}>
                    <Linked text={text} names={names} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      );
    const again = part.label === last;
    last = part.label;
    rows.push(
      <div class={again ? 'row again' : 'row'}>
        <dt>{again ? <span class="hidden">{part.label}</span> : part.label}</dt>
        <dd class={part.part === 'said' ? part.tone : ''}>{body}</dd>
      </div>,
    );
  });
  flush();
  return <div class="told">{blocks}</div>;
}

export interface Column<T> {
  title: string;
  num?: boolean;
  /** Share of the width. */
  width: string;
  cell: (row: T) => ComponentChildren;
  /** Left out where there is no room. */
  wide?: boolean;
}

const ROW = 34;
const PAGE = 100;

/** A long list of which only what is seen is asked for and drawn. */
export function Long<T>(props: {
  label: string;
  columns: Column<T>[];
  page: (skip: number, limit: number, signal: AbortSignal) => Promise<{ rows: T[]; total: number }>;
  of: string;
  empty: ComponentChildren;
  every?: number;
  onTotal?: (total: number) => void;
}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [pages, setPages] = useState(new Map<number, T[]>());
  const [total, setTotal] = useState<number | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [at, setAt] = useState(0);
  const [tick, setTick] = useState(0);
  useEffect(() => {
    setPages(new Map());
    setTotal(null);
    setAt(0);
    if (box.current) box.current.scrollTop = 0;
  }, [props.of]);
  useEffect(() => {
    if (!props.every) return;
    const timer = setInterval(() => !document.hidden && setTick((n) => n + 1), props.every);
    return () => clearInterval(timer);
  }, [props.every]);
  const first = Math.floor(at / ROW / PAGE);
  const height = Math.max(box.current?.clientHeight ?? 0, Math.round(innerHeight * 0.72));
  const last = Math.floor((at + height) / ROW / PAGE);
  useEffect(() => {
    const stop = new AbortController();
    for (let page = first; page <= last; page++) {
      if (page > first && total !== null && page * PAGE >= total) break;
      props.page(page * PAGE, PAGE, stop.signal).then(
        (found) => {
          setPages((old) => {
            const all = new Map([...old].filter(([n]) => Math.abs(n - page) < 6));
            return all.set(page, found.rows);
          });
          setTotal(found.total);
          props.onTotal?.(found.total);
          setError(null);
        },
        (failed: Error) => failed.name !== 'AbortError' && setError(failed),
      );
    }
    return () => stop.abort();
  }, [props.of, first, last, tick]);
  const template = props.columns.map((column) => column.width).join(' ');
  const from = Math.max(0, Math.floor(at / ROW) - 5);
  const until = Math.min(total ?? 0, Math.ceil((at + height) / ROW) + 5);
  const shown: JSX.Element[] = [];
  for (let n = from; n < until; n++) {
    const row = pages.get(Math.floor(n / PAGE))?.[n % PAGE];
    shown.push(
      <div class="tr" role="row" aria-rowindex={n + 2} style={{ top: `${n * ROW}px`, gridTemplateColumns: template }}>
        {props.columns.map((column) => (
          <div role="cell" class={`${column.num ? 'num' : ''}${column.wide ? ' wide' : ''}`}>
            {row ? column.cell(row) : <span class="dim">…</span>}
          </div>
        ))}
      </div>,
    );
  }
  if (error && total === null) {
    return (
      <div class="empty" role="alert">
        <strong>Cannot show {props.label}.</strong>
        <p>{error.message}</p>
      </div>
    );
  }
  return (
    <div class="long">
      <div class="tbody" role="table" aria-label={props.label} aria-rowcount={(total ?? 0) + 1} ref={box} tabIndex={0} onScroll={(event) => setAt(event.currentTarget.scrollTop)}>
        <div class="thead" role="rowgroup">
          <div class="tr" role="row" style={{ gridTemplateColumns: template }}>
            {props.columns.map((column) => (
              <div role="columnheader" class={`${column.num ? 'num' : ''}${column.wide ? ' wide' : ''}`}>
                {column.title}
              </div>
            ))}
          </div>
        </div>
        <div class="tall" role="rowgroup" style={{ height: `${(total ?? 0) * ROW}px` }}>{shown}</div>
      </div>
      {total === null && <p class="loading">Asking for {props.label}…</p>}
      {total === 0 && <Empty>{props.empty}</Empty>}
      {error && <p class="note warn" role="status">Not refreshed: {error.message}</p>}
      {total !== null && total > 0 && <p class="count">{int(total)} {props.label}</p>}
    </div>
  );
}

/** A bar of parts with meaning; the legend is text, so colour is never alone. */
export function Bar(props: { parts: { n: number; tone: string; title: string }[]; total: number; label: string }): JSX.Element {
  const said = props.parts.filter((part) => part.n > 0).map((part) => `${int(part.n)} ${part.title}`).join(', ');
  return (
    <div class="bar" role="img" aria-label={`${props.label}: ${said || 'nothing'}`}>
      {props.parts
        .filter((part) => part.n > 0)
        .map((part) => (
          <span class={part.tone} style={{ flexGrow: String(part.n / Math.max(1, props.total)) }} title={`${int(part.n)} ${part.title}`} />
        ))}
    </div>
  );
}
