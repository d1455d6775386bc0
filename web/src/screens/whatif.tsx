// What if: change something on a copy, let the engine decide, and see the difference. The address holds the question.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get, post } from '../api';
import { cents, centsMore, delta, hourly, int, percent, word } from '../format';
import { useLive } from '../live';
import { href, replace, usePlace } from '../router';
import type { FateCount, Group, NeedRow } from '../types';
import { Ask, Card, Empty, Head, useAsk } from '../ui';
import { Feed } from './fleet';

type Edit = Record<string, unknown> & { edit: string };

interface Side {
  usd_per_hour: number;
  unmet: number;
  short: number;
  actions: FateCount[];
  spot_share: number;
  interruptions_per_hour: number;
  cycles: number;
  settled: boolean;
  bound_machines: number;
  ahead?: Ahead | null;
}
interface Ahead {
  hours: number;
  runs: number;
  usd: number;
  usd_spread: number;
  interruptions: number;
  interruptions_spread: number;
  preemptions: number;
  provisions: number;
  unmet_need_hours: number;
  unmet_need_hours_spread: number;
}
interface Found {
  before: Side;
  after: Side;
  only_before: Group[];
  only_after: Group[];
  needs: { data: { need: { id: string } | null; machines_before: number; machines_after: number }; need: string; before: string; after: string }[];
  edited_machines: number;
  edited_needs: number;
}

const filterText = (filter: Record<string, unknown> | undefined): string => {
  const parts = Object.entries(filter ?? {}).flatMap(([key, value]) => {
    const values = Array.isArray(value) ? value : [value];
    return values.length && values[0] !== '' ? [`${key.replace(/s$/, '').replaceAll('_', ' ')} ${values.map((one) => word(String(one))).join(', ')}`] : [];
  });
  return parts.join(', ') || 'all machines';
};

/** An edit in words. */
export function inWords(edit: Edit): string {
  const filter = edit.filter as Record<string, unknown> | undefined;
  const zones = filter?.zones as string[] | undefined;
  switch (edit.edit) {
    case 'remove_machines':
      return zones?.length && Object.keys(filter ?? {}).length === 1 ? `${zones.join(', ')} dies` : `lose ${filterText(filter)}`;
    case 'set_price':
      return `prices of ${filterText(filter)} ${edit.factor !== undefined ? `× ${String(edit.factor)}` : `become ${hourly(Number(edit.usd_per_hour))}`}`;
    case 'set_probability':
      return `interruptions of ${filterText(filter)} become ${String(edit.interruption_probability)}/h`;
    case 'scale_need':
      return `need ${String(edit.need)} asks for × ${String(edit.factor)}`;
    case 'remove_need':
      return `need ${String(edit.need)} goes away`;
    case 'set_priority':
      return `${edit.need ? `need ${String(edit.need)}` : `cluster ${String(edit.cluster)}`} gets priority ${int(Number(edit.priority))}`;
    case 'set_penalty':
      return `${edit.need ? `need ${String(edit.need)}` : `cluster ${String(edit.cluster)}`}: an interruption costs $${String(edit.interruption_usd)}`;
    case 'add_machines':
      return `${int(Number(edit.count))} more like ${String(edit.like)}${edit.usd_per_hour !== undefined ? ` at ${hourly(Number(edit.usd_per_hour))}` : ''}`;
    default:
      return edit.edit;
  }
}

function read(text: string | null): Edit[] {
  try {
    const found: unknown = JSON.parse(text ?? '[]');
    return Array.isArray(found) ? found.filter((one): one is Edit => typeof one === 'object' && one !== null && typeof (one as Edit).edit === 'string') : [];
  } catch {
    return [];
  }
}

const KINDS: [string, string][] = [
  ['zone', 'A zone dies'],
  ['price', 'Prices change'],
  ['demand', 'A need grows or shrinks'],
  ['priority', 'A priority changes'],
  ['penalty', 'A penalty changes'],
  ['offer', 'More machines on offer'],
];

function Editor(props: { add: (edit: Edit) => void }): JSX.Element {
  const { state } = useLive();
  const [kind, setKind] = useState('zone');
  const [zone, setZone] = useState('');
  const [capacity, setCapacity] = useState('spot');
  const [factor, setFactor] = useState('2');
  const [need, setNeed] = useState('');
  const [cluster, setCluster] = useState('');
  const [number, setNumber] = useState('10');
  const [like, setLike] = useState('');
  const offers = useAsk<{ rows: { data: { zone: string; instance_type: string } }[] }>((signal) => get('offers', {}, signal), 'offers');
  const needs = useAsk<{ rows: NeedRow[] }>((signal) => get('needs', { limit: 200 }, signal), 'needs');
  const machines = useAsk<{ rows: { data: { id: string; instance_type: string; capacity_type: string | null; zone: string } }[] }>((signal) => get('machines', { state: 'speculative', limit: 200 }, signal), 'quota');
  const zones = [...new Set(offers.data?.rows.map((row) => row.data.zone) ?? [])].sort();
  const lanes = state?.summary?.lanes ?? [];
  useEffect(() => { if (!zone && zones[0]) setZone(zones[0]); }, [zones.length]);
  const firstNeed = needs.data?.rows[0]?.data.key?.id ?? '';
  const sorts = new Map((machines.data?.rows ?? []).map((row) => [`${row.data.instance_type} ${word(row.data.capacity_type)} ${row.data.zone}`, row.data.id]));
  const edit = (): Edit | null => {
    const wanted = need || firstNeed;
    switch (kind) {
      case 'zone': return zone ? { edit: 'remove_machines', filter: { zones: [zone] } } : null;
      case 'price': return { edit: 'set_price', filter: { capacity_types: [capacity] }, factor: Number(factor) };
      case 'demand': return wanted ? { edit: 'scale_need', need: wanted, factor: Number(factor) } : null;
      case 'priority': return wanted ? { edit: 'set_priority', need: wanted, priority: Math.round(Number(number)) } : null;
      case 'penalty': return { edit: 'set_penalty', cluster: cluster || lanes[0]?.cluster || '', interruption_usd: Number(number) };
      case 'offer': {
        const id = like || [...sorts.values()][0];
        return id ? { edit: 'add_machines', like: id, count: Math.round(Number(number)) } : null;
      }
      default: return null;
    }
  };
  const ready = edit();
  const needPicker = (
    <label>Need <select value={need || firstNeed} onChange={(event) => setNeed(event.currentTarget.value)}>{(needs.data?.rows ?? []).map((row) => <option value={row.data.key?.id ?? ''}>{row.data.key?.cluster}/{row.data.key?.group || row.data.key?.id}</option>)}</select></label>
  );
  return (
    <form class="editor" onSubmit={(event) => { event.preventDefault(); if (ready) props.add(ready); }}>
      <label>What <select value={kind} onChange={(event) => setKind(event.currentTarget.value)}>{KINDS.map(([value, text]) => <option value={value}>{text}</option>)}</select></label>
      {kind === 'zone' && <label>Zone <select value={zone} onChange={(event) => setZone(event.currentTarget.value)}>{zones.map((one) => <option value={one}>{one}</option>)}</select></label>}
      {kind === 'price' && <label>Capacity <select value={capacity} onChange={(event) => setCapacity(event.currentTarget.value)}>{['spot', 'on_demand', 'reserved', 'bare_metal'].map((one) => <option value={one}>{word(one)}</option>)}</select></label>}
      {(kind === 'demand' || kind === 'priority') && needPicker}
      {kind === 'penalty' && <label>Cluster <select value={cluster} onChange={(event) => setCluster(event.currentTarget.value)}>{lanes.map((lane) => <option value={lane.cluster}>{lane.cluster}</option>)}</select></label>}
      {kind === 'offer' && <label>Like <select value={like} onChange={(event) => setLike(event.currentTarget.value)}>{[...sorts].map(([text, id]) => <option value={id}>{text}</option>)}</select></label>}
      {(kind === 'price' || kind === 'demand') && <label>Times <input class="short" type="number" step="any" min="0" value={factor} onInput={(event) => setFactor(event.currentTarget.value)} /></label>}
      {kind === 'priority' && <label>Priority <input class="short" type="number" value={number} onInput={(event) => setNumber(event.currentTarget.value)} /></label>}
      {kind === 'penalty' && <label>Dollars <input class="short" type="number" min="0" step="any" value={number} onInput={(event) => setNumber(event.currentTarget.value)} /></label>}
      {kind === 'offer' && <label>Count <input class="short" type="number" min="1" value={number} onInput={(event) => setNumber(event.currentTarget.value)} /></label>}
      <button type="submit" disabled={!ready}>Add</button>
    </form>
  );
}

const sum = (side: Side, kind: string) => side.actions.filter((one) => one.kind === kind).reduce((n, one) => n + one.actions, 0);

const signed = (n: number, places: number): string => `${n > 0 ? '+' : ''}${n.toFixed(places)}`;

/** How long the simulator goes on, and how often, if somebody asks for it. */
const SPANS: [string, string][] = [['', 'only settle'], ['6', 'also 6 hours on'], ['24', 'also a day on'], ['168', 'also a week on']];
const RUNS = 20;

/** What came of going on: means over the runs, with one standard deviation beside them. */
function HoursOn(props: { before: Ahead; after: Ahead }): JSX.Element {
  const { before, after } = props;
  const of = (label: string, a: number, b: number, show: (n: number) => string, more: (n: number) => string, isCost: boolean, spreads?: [number, number]) => {
    const d = b - a;
    const noise = spreads ? Math.max(...spreads) : 0;
    const text = (n: number, spread: number | undefined) => (
      <>{show(n)}{spread !== undefined && <span class="dim"> ±{show(spread)}</span>}</>
    );
    return (
      <tr>
        <th scope="row">{label}</th>
        <td class="num">{text(a, spreads?.[0])}</td>
        <td class="num">{text(b, spreads?.[1])}</td>
        <td class={`num ${Math.abs(d) <= noise || Math.abs(d) < 1e-9 ? 'dim' : !isCost ? 'strong' : d > 0 ? 'bad' : 'good'}`} title={Math.abs(d) <= noise ? 'Within the spread of the runs' : undefined}>{Math.abs(d) < 1e-9 ? 'same' : more(d)}</td>
      </tr>
    );
  };
  const two = (n: number) => n.toFixed(2);
  const more = (n: number) => signed(n, 2);
  return (
    <table class="diff ahead">
      <thead><tr><th scope="col" /><th scope="col" class="num">now</th><th scope="col" class="num">changed</th><th scope="col" class="num">difference</th></tr></thead>
      <tbody>
        {of('$ in all', before.usd, after.usd, cents, centsMore, true, [before.usd_spread, after.usd_spread])}
        {of('interruptions', before.interruptions, after.interruptions, two, more, true, [before.interruptions_spread, after.interruptions_spread])}
        {of('unmet need-hours', before.unmet_need_hours, after.unmet_need_hours, two, more, true, [before.unmet_need_hours_spread, after.unmet_need_hours_spread])}
        {of('preemptions', before.preemptions, after.preemptions, two, more, true)}
        {of('provisions', before.provisions, after.provisions, two, more, false)}
      </tbody>
    </table>
  );
}

function Difference(props: { found: Found }): JSX.Element {
  const { before, after } = props.found;
  const hours = 24;
  const rows: [string, string, string, string, number][] = [
    ['$ an hour', cents(before.usd_per_hour), cents(after.usd_per_hour), centsMore(after.usd_per_hour - before.usd_per_hour), after.usd_per_hour - before.usd_per_hour],
    ['$ a day, if it stays so', cents(before.usd_per_hour * hours), cents(after.usd_per_hour * hours), centsMore((after.usd_per_hour - before.usd_per_hour) * hours), after.usd_per_hour - before.usd_per_hour],
    ['bound machines', int(before.bound_machines), int(after.bound_machines), delta(after.bound_machines - before.bound_machines), 0],
    ['unmet needs', int(before.unmet), int(after.unmet), delta(after.unmet - before.unmet), after.unmet - before.unmet],
    ['spot share', percent(before.spot_share), percent(after.spot_share), signed(100 * (after.spot_share - before.spot_share), 1) + ' points', 0],
    ['expected interruptions a day', (before.interruptions_per_hour * hours).toFixed(2), (after.interruptions_per_hour * hours).toFixed(2), signed((after.interruptions_per_hour - before.interruptions_per_hour) * hours, 2), after.interruptions_per_hour - before.interruptions_per_hour],
    ...(['provision', 'bootstrap', 'preempt', 'reclaim', 'delete'] as const).map((kind): [string, string, string, string, number] => [`${kind}s`, int(sum(before, kind)), int(sum(after, kind)), delta(sum(after, kind) - sum(before, kind)), kind === 'preempt' ? sum(after, kind) - sum(before, kind) : 0]),
  ];
  return (
    <table class="diff">
      <thead><tr><th scope="col" /><th scope="col" class="num">now</th><th scope="col" class="num">changed</th><th scope="col" class="num">difference</th></tr></thead>
      <tbody>
        {rows.map(([label, a, b, d, bad]) => (
          <tr><th scope="row">{label}</th><td class="num">{a}</td><td class="num">{b}</td><td class={`num ${a === b ? 'dim' : bad > 0 ? 'bad' : bad < 0 ? 'good' : 'strong'}`}>{a === b ? 'same' : d}</td></tr>
        ))}
      </tbody>
    </table>
  );
}

export function WhatIf(): JSX.Element {
  const { query } = usePlace();
  const { state } = useLive();
  const text = query.get('e') ?? '[]';
  const edits = read(text);
  const [copied, setCopied] = useState(false);
  const hours = Number(query.get('h') ?? 0) || 0;
  const put = (all: Edit[], on: number) => replace(['whatif'], { e: all.length ? JSON.stringify(all) : undefined, h: on ? String(on) : undefined });
  const set = (all: Edit[]) => put(all, hours);
  const asked = useAsk<Found | null>(() => (edits.length ? post('whatif', { edits, cycles: 5, hours, seeds: hours ? RUNS : 0 }) : Promise.resolve(null)), `${text} ${hours}`);
  const now = state?.summary?.as_of?.now ?? null;
  const share = async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    } catch {
      // The address bar has it too.
    }
  };
  return (
    <>
      <Head title="What if" cmd={['bigfleet whatif', flags(edits), hours ? `--for ${hours}h` : ''].filter(Boolean).join(' ')} />
      <div class="two narrow">
        <div class="stack">
          <Card title="Change something">
            <Editor add={(edit) => set([...edits, edit])} />
            {edits.length === 0 && <Empty>Nothing is changed yet. Nothing you do here is done to the fleet: the engine decides on a copy.</Empty>}
            <ol class="edits">
              {edits.map((edit, at) => (
                <li><span>{inWords(edit)}</span><button class="small" aria-label={`Take back: ${inWords(edit)}`} onClick={() => set(edits.filter((_, n) => n !== at))}>✕</button></li>
              ))}
            </ol>
            <div class="editor"><label>Then <select value={hours ? String(hours) : ''} onChange={(event) => put(edits, Number(event.currentTarget.value))}>
              {SPANS.map(([value, said]) => <option value={value}>{said}</option>)}
              {hours > 0 && !SPANS.some(([value]) => value === String(hours)) && <option value={String(hours)}>also {int(hours)} hours on</option>}
            </select></label></div>
            {edits.length > 0 && (
              <p class="buttons"><button onClick={asked.again}>Run again</button> <button onClick={() => void share()}>{copied ? 'Copied' : 'Copy link'}</button> <button onClick={() => set([])}>Clear</button></p>
            )}
          </Card>
        </div>
        <div class="stack">
          {edits.length > 0 && (
            <Ask of={asked} what="difference">
              {(found) => found && (
                <>
                  <Card title="The difference">
                    <Difference found={found} />
                    <p class="dim small-text">
                      {int(found.edited_machines)} machines and {int(found.edited_needs)} needs were changed; {found.after.settled ? `settled after ${int(found.after.cycles)} cycles` : `not settled after ${int(found.after.cycles)} cycles`}, machines arriving at once. Rails take no part.
                    </p>
                  </Card>
                  {found.before.ahead && found.after.ahead && (
                    <Card title={`${int(found.after.ahead.hours)} hours on`}>
                      <HoursOn before={found.before.ahead} after={found.after.ahead} />
                      <p class="dim small-text">
                        {int(found.after.ahead.runs)} runs of the simulator, seeds from 42 on: the mean, and ± one standard deviation. Rails and holds as in the fleet, moves as long as they were seen to take; demand and prices as now, losses as likely as providers say.
                      </p>
                    </Card>
                  )}
                  <Card title={`Needs that fare differently (${int(found.needs.length)})`}>
                    {found.needs.length ? (
                      <table>
                        <thead><tr><th scope="col">Need</th><th scope="col">now</th><th scope="col">changed</th><th scope="col" class="num">machines</th></tr></thead>
                        <tbody>{found.needs.slice(0, 100).map((one) => <tr><th scope="row"><a href={href(['need', one.data.need?.id ?? ''])}>{one.need}</a></th><td class={one.before === 'covered' ? 'good' : 'bad'}>{one.before}</td><td class={one.after === 'covered' ? 'good' : 'bad'}>{one.after}</td><td class="num">{int(one.data.machines_before)} → {int(one.data.machines_after)}</td></tr>)}</tbody>
                      </table>
                    ) : <Empty>None.</Empty>}
                  </Card>
                  <Card title="What would be done then, and not now">{found.only_after.length ? <Feed groups={found.only_after} now={now} most={50} /> : <Empty>Nothing else.</Empty>}</Card>
                </>
              )}
            </Ask>
          )}
          {edits.length === 0 && <Card title="The difference"><Empty>Add a change on the left: a zone that dies, prices, demand, an offer. The table will show money, machines, unmet needs and interruptions, now and changed.</Empty></Card>}
        </div>
      </div>
    </>
  );
}

/** The same question for the command line. */
function flags(edits: Edit[]): string {
  return edits
    .map((edit) => {
      const filter = edit.filter as { zones?: string[]; capacity_types?: string[] } | undefined;
      switch (edit.edit) {
        case 'remove_machines': return `--zone-down ${filter?.zones?.join(',') ?? ''}`;
        case 'set_price': return `--price capacity=${word(filter?.capacity_types?.[0] ?? '')}:x${String(edit.factor)}`;
        case 'scale_need': return `--scale ${String(edit.need)}=${String(edit.factor)}`;
        case 'set_priority': return `--priority ${String(edit.need || edit.cluster)}=${String(edit.priority)}`;
        case 'set_penalty': return `--penalty ${String(edit.need || edit.cluster)}=${String(edit.interruption_usd)}`;
        case 'add_machines': return `--add ${String(edit.like)}:${String(edit.count)}`;
        default: return '';
      }
    })
    .join(' ');
}
