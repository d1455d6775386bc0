// Machines: all of them, however many, and the life of one.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { get } from '../api';
import { ago, clock, hourly, int, price, usd, word } from '../format';
import { useLive } from '../live';
import { href, replace, usePlace } from '../router';
import type { Explained, Machine } from '../types';
import { Ask, Card, type Column, Empty, Head, Long, Pill, Story, useAsk } from '../ui';

interface Row {
  shard: string;
  data: Machine;
}
const STATES = ['configured', 'idle', 'creating', 'configuring', 'draining', 'deleting', 'failed', 'speculative'];
const TYPES = ['bare_metal', 'reserved', 'on_demand', 'spot'];

const stateTone = (state: string | null) =>
  state === 'configured' ? 'good' : state === 'failed' ? 'bad' : state === 'idle' || state === 'speculative' ? 'plain' : 'warn';

export function Machines(): JSX.Element {
  const { query } = usePlace();
  const { state } = useLive();
  const now = state?.summary?.as_of?.now ?? null;
  const names = ['cluster', 'state', 'capacity', 'zone', 'id', 'need', 'troubled'] as const;
  const filter = Object.fromEntries(names.map((name) => [name, query.get(name) ?? ''])) as Record<(typeof names)[number], string>;
  const set = (change: Partial<typeof filter>) => replace(['machines'], { ...filter, ...change });
  const columns: Column<Row>[] = [
    { title: 'Machine', width: 'minmax(190px, 2fr)', cell: (row) => <a class="cut" title={row.data.id} href={href(['machine', row.data.id])}>{row.data.id}</a> },
    { title: 'state', width: '112px', cell: (row) => <Pill tone={row.data.trouble ? 'bad' : stateTone(row.data.state)}>{row.data.trouble || row.data.state}</Pill> },
    { title: 'cluster', width: 'minmax(70px, 1fr)', cell: (row) => row.data.cluster || <span class="dim">–</span> },
    { title: 'capacity', width: '92px', wide: true, cell: (row) => word(row.data.capacity_type) },
    { title: 'type', width: 'minmax(90px, 1fr)', wide: true, cell: (row) => <span class="cut">{row.data.instance_type}</span> },
    { title: 'zone', width: 'minmax(80px, 1fr)', wide: true, cell: (row) => <span class="cut">{row.data.zone}</span> },
    { title: '$/h', num: true, width: '76px', cell: (row) => price(row.data.usd_per_hour) },
    { title: 'need', width: 'minmax(80px, 1fr)', wide: true, cell: (row) => (row.data.bound_for ? <a href={href(['need', row.data.bound_for.id])}>{row.data.bound_for.group || row.data.bound_for.id}</a> : <span class="dim">–</span>) },
    { title: 'since', num: true, width: '70px', wide: true, cell: (row) => ago(row.data.state_since, now) },
  ];
  const flags = Object.entries(filter).filter(([, value]) => value).map(([name, value]) => {
    const flag = { id: '', capacity: '--capacity', troubled: '--troubled' }[name] ?? `--${name}`;
    if (name === 'troubled') return flag;
    return flag ? `${flag} ${word(value)}` : value;
  });
  return (
    <>
      <Head title="Machines" cmd={['bigfleet get machines', ...flags].join(' ')}>
        <div class="filters">
          <label>State <select value={filter.state} onChange={(event) => set({ state: event.currentTarget.value })}><option value="">any</option>{STATES.map((one) => <option value={one}>{one}</option>)}</select></label>
          <label>Capacity <select value={filter.capacity} onChange={(event) => set({ capacity: event.currentTarget.value })}><option value="">any</option>{TYPES.map((one) => <option value={one}>{word(one)}</option>)}</select></label>
          <label>Cluster <select value={filter.cluster} onChange={(event) => set({ cluster: event.currentTarget.value })}><option value="">any</option>{(state?.summary?.lanes ?? []).map((lane) => <option value={lane.cluster}>{lane.cluster}</option>)}</select></label>
          <label>Name <input type="search" value={filter.id} placeholder="begins with" onChange={(event) => set({ id: event.currentTarget.value.trim() })} /></label>
          <label><input type="checkbox" checked={filter.troubled === '1'} onChange={(event) => set({ troubled: event.currentTarget.checked ? '1' : '' })} /> in trouble</label>
          {filter.need && <button class="small" onClick={() => set({ need: '' })}>for need {filter.need} ✕</button>}
        </div>
      </Head>
      <Card class="flush">
        <Long<Row>
          label="machines"
          columns={columns}
          of={JSON.stringify(filter)}
          every={5000}
          empty="No machine is like that."
          page={(skip, limit, signal) => get('machines', { ...filter, skip, limit }, signal)}
        />
      </Card>
    </>
  );
}

interface Step {
  cycle: number;
  time: string | null;
  kind: string | null;
  said: string;
  why: string;
  fate: string | null;
}

function WhyNot(props: { machine: string }): JSX.Element {
  const [need, setNeed] = useState('');
  const [asked, ask] = useState('');
  const answer = useAsk<Explained | null>((signal) => (asked ? get('explain/why-not', { need: asked, machine: props.machine }, signal) : Promise.resolve(null)), asked);
  return (
    <Card title="Why does another need not have it?">
      <form class="inline" onSubmit={(event) => { event.preventDefault(); ask(need.trim()); }}>
        <label>Need <input value={need} placeholder="id, or cluster/gang" onInput={(event) => setNeed(event.currentTarget.value)} /></label>
        <button type="submit" disabled={!need.trim()}>Ask</button>
      </form>
      {asked && <Ask of={answer} what="answer">{(found) => (found ? <Story parts={found.story} data={found.data} /> : null)}</Ask>}
    </Card>
  );
}

export function MachineScreen(props: { name: string }): JSX.Element {
  const { query } = usePlace();
  const at = query.get('at') ?? undefined;
  const { state } = useLive();
  const now = state?.summary?.as_of?.now ?? null;
  const asked = useAsk<Explained>((signal) => get('explain/machine', { name: props.name, at }, signal), `${props.name}@${at}`, at ? 0 : 4000);
  const life = useAsk<{ rows: { data: Step & Record<string, unknown>; said: string; why: string; withheld: boolean }[] }>(
    (signal) => get('decisions', { machine: props.name, record: true, limit: 200 }, signal),
    props.name,
    8000,
  );
  return (
    <>
      <Head title={props.name} cmd={`bigfleet explain machine ${props.name}${at ? ` --at ${at}` : ''}`} />
      <Ask of={asked} what="machine">
        {(found) => {
          const machine = found.data.machine as (Machine & { resources: Record<string, string>; labels: Record<string, string>; interruption_probability: number; host: string }) | null;
          const since = machine?.state_since ?? null;
          const hours = since && now ? (Date.parse(now) - Date.parse(since)) / 3.6e6 : null;
          return (
            <div class="two">
              <div class="stack">
                <Card><Story parts={found.story} data={found.data} /></Card>
                <Card title="Its life, the newest first">
                  <Ask of={life} what="its life">
                    {({ rows }) => (rows.length ? (
                      <ol class="life">
                        {rows.map((row) => (
                          <li class={row.withheld ? 'withheld' : ''}>
                            <time>{clock(row.data.time, now)}</time>
                            <div><strong>{row.said}</strong><span class="why">{row.why}</span></div>
                            <a href={href(['decision', String(row.data.cycle), props.name])}>cycle {row.data.cycle}</a>
                          </li>
                        ))}
                      </ol>
                    ) : (
                      <Empty>Nothing was ever decided about it: it is as its provider lists it.</Empty>
                    ))}
                  </Ask>
                </Card>
              </div>
              <div class="stack">
                <Card title="At a glance">
                  <dl class="facts">
                    <div><dt>state</dt><dd><Pill tone={stateTone(machine?.state ?? null)}>{machine?.state}</Pill></dd></div>
                    <div><dt>cluster</dt><dd>{machine?.cluster ? <a href={href(['cluster', machine.cluster])}>{machine.cluster}</a> : 'none'}</dd></div>
                    <div><dt>sort</dt><dd>{machine?.instance_type} {word(machine?.capacity_type ?? null)} {machine?.zone}</dd></div>
                    <div><dt>price</dt><dd>{hourly(machine?.usd_per_hour ?? 0)}</dd></div>
                    <div><dt>in this state</dt><dd>{since ? `${ago(since, now)}${hours !== null && machine?.state !== 'speculative' ? `, ${usd(hours * (machine?.usd_per_hour ?? 0))} so far` : ''}` : 'unknown'}</dd></div>
                    <div><dt>risk</dt><dd>{machine?.interruption_probability ? `${machine.interruption_probability}/h interruptions by its provider's word` : 'none declared'}</dd></div>
                    <div><dt>provider</dt><dd>{machine?.provider}</dd></div>
                  </dl>
                </Card>
                <WhyNot machine={props.name} />
                <Card title={`Labels (${int(Object.keys(machine?.labels ?? {}).length)})`}>
                  <dl class="facts labels">
                    {Object.entries(machine?.labels ?? {}).map(([key, value]) => <div><dt>{key}</dt><dd>{value}</dd></div>)}
                  </dl>
                </Card>
              </div>
            </div>
          );
        }}
      </Ask>
    </>
  );
}
