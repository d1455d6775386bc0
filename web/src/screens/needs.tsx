// Needs: everything that is asked for, what is short first, and one of them with all its reasons.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { get, search } from '../api';
import { ago, cents, clock, hourly, int } from '../format';
import { useLive } from '../live';
import { go, href, replace, usePlace } from '../router';
import type { Explained, Group, NeedRow } from '../types';
import { Ask, Card, type Column, Empty, Head, Long, Pill, Story, useAsk } from '../ui';
import { Feed } from './fleet';

const verdict = (row: NeedRow): JSX.Element => {
  if (row.data.satisfied) return <Pill tone="good">covered</Pill>;
  return <Pill tone={row.data.reason === 'in_flight' ? 'warn' : 'bad'}>{row.reason || 'not decided yet'}</Pill>;
};

export function Needs(): JSX.Element {
  const { query } = usePlace();
  const { state } = useLive();
  const [pod, setPod] = useState('');
  const now = state?.summary?.as_of?.now ?? null;
  const filter = { cluster: query.get('cluster') ?? '', unmet: query.get('unmet') ?? '', gangs: query.get('gangs') ?? '' };
  const set = (change: Partial<typeof filter>) => replace(['needs'], { ...filter, ...change });
  const columns: Column<NeedRow>[] = [
    { title: 'Need', width: 'minmax(110px, 1.1fr)', cell: (row) => <a href={href(['need', row.data.key?.id ?? ''])}>{row.data.key?.group || row.data.key?.id}</a> },
    { title: 'cluster', width: 'minmax(70px, .8fr)', cell: (row) => row.data.key?.cluster },
    { title: 'priority', num: true, width: '90px', cell: (row) => int(row.data.spec?.priority ?? 0) },
    { title: 'verdict', width: 'minmax(120px, 1fr)', cell: verdict },
    { title: 'machines', num: true, width: '80px', cell: (row) => int(row.data.credited + row.data.acquired) },
    { title: '$/h', num: true, width: '80px', wide: true, cell: (row) => cents(row.data.usd_per_hour) },
    { title: 'for', num: true, width: '70px', wide: true, cell: (row) => ago(row.data.short_since, now) },
    { title: 'wants', width: 'minmax(160px, 2.4fr)', wide: true, cell: (row) => <span class="cut" title={row.wants}>{row.data.satisfied ? row.wants : `misses ${row.missing}`}</span> },
  ];
  const lanes = state?.summary?.lanes ?? [];
  const cmd = `bigfleet get needs${filter.unmet ? ' --unmet' : ''}${filter.cluster ? ` --cluster ${filter.cluster}` : ''}${filter.gangs ? ' --gangs' : ''}`;
  return (
    <>
      <Head title="Needs" cmd={cmd}>
        <div class="filters">
          <label>Cluster <select value={filter.cluster} onChange={(event) => set({ cluster: event.currentTarget.value })}>
            <option value="">all</option>
            {lanes.map((lane) => <option value={lane.cluster}>{lane.cluster}</option>)}
          </select></label>
          <label><input type="checkbox" checked={filter.unmet === '1'} onChange={(event) => set({ unmet: event.currentTarget.checked ? '1' : '' })} /> only short ones</label>
          <label><input type="checkbox" checked={filter.gangs === '1'} onChange={(event) => set({ gangs: event.currentTarget.checked ? '1' : '' })} /> only gangs</label>
          <form class="inline" onSubmit={(event) => { event.preventDefault(); if (pod.trim()) go(['pod', pod.trim()]); }}><label>Pod <input type="search" value={pod} placeholder="namespace/name" onInput={(event) => setPod(event.currentTarget.value)} /></label></form>
        </div>
      </Head>
      <Card class="flush">
        <Long<NeedRow>
          label="needs"
          columns={columns}
          of={JSON.stringify(filter)}
          every={3000}
          empty={filter.unmet ? 'No need is short: everything that is asked for is covered.' : 'Nobody asks for anything yet.'}
          page={(skip, limit, signal) => get('needs', { cluster: filter.cluster, unmet: filter.unmet, gangs: filter.gangs, skip, limit }, signal)}
        />
      </Card>
    </>
  );
}

interface Holder {
  need: { id: string; cluster: string; group: string } | null;
  cluster: string;
  state: string | null;
  priority: number;
  machines: number;
}

function Holders(props: { holders: Holder[]; mine: number }): JSX.Element | null {
  if (!props.holders.length) return null;
  return (
    <Card title="Who holds what it could use">
      <table>
        <thead><tr><th scope="col">Holder</th><th scope="col">cluster</th><th scope="col">state</th><th scope="col" class="num">priority</th><th scope="col" class="num">machines</th></tr></thead>
        <tbody>
          {props.holders.slice(0, 40).map((one) => (
            <tr>
              <th scope="row">{one.need ? <a href={href(['need', one.need.id])}>{one.need.group || one.need.id}</a> : one.cluster ? 'no need claims them' : 'free'}</th>
              <td>{one.cluster || '–'}</td>
              <td>{one.state}</td>
              <td class={one.need && one.priority >= props.mine ? 'num bad' : 'num'}>{one.need ? `${int(one.priority)} ${one.priority > props.mine ? '>' : one.priority === props.mine ? '=' : '<'} ${int(props.mine)}` : '–'}</td>
              <td class="num">{int(one.machines)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

export function NeedScreen(props: { name: string }): JSX.Element {
  const { query } = usePlace();
  const at = query.get('at') ?? undefined;
  const { state } = useLive();
  const now = state?.summary?.as_of?.now ?? null;
  const asked = useAsk<Explained>((signal) => get('explain/need', { name: props.name, at }, signal), `${props.name}@${at}`, at ? 0 : 4000);
  const past = useAsk<{ groups: Group[] }>((signal) => get('decisions', { need: props.name, record: true, limit: 200 }, signal), props.name, 8000);
  return (
    <>
      <Head title={`Need ${props.name}`} cmd={`bigfleet explain need ${props.name}${at ? ` --at ${at}` : ''}`} />
      <Ask of={asked} what="need">
        {(found) => {
          const need = found.data.need as { spec: { priority: number } | null; usd_per_hour: number; key: { id: string; cluster: string } | null; short_since: string | null } | null;
          const funnel = found.data.funnel as { holders: Holder[] } | null;
          return (
            <div class="two">
              <div class="stack">
                <Card><Story parts={found.story} data={found.data} /></Card>
                <Holders holders={funnel?.holders ?? []} mine={need?.spec?.priority ?? 0} />
              </div>
              <div class="stack">
                <Card title="At a glance">
                  <dl class="facts">
                    <div><dt>cluster</dt><dd><a href={href(['cluster', need?.key?.cluster ?? ''])}>{need?.key?.cluster}</a></dd></div>
                    <div><dt>costs</dt><dd>{hourly(need?.usd_per_hour ?? 0)}</dd></div>
                    <div><dt>short since</dt><dd>{need?.short_since ? `${clock(need.short_since, now)} (${ago(need.short_since, now)})` : 'it is not'}</dd></div>
                    <div><dt>its machines</dt><dd><a href={href(['machines'], { need: need?.key?.id })}>list</a></dd></div>
                    <div><dt>preemptions</dt><dd><a href={href(['preemptions'], { need: need?.key?.id })}>who took from whom</a></dd></div>
                    <div><dt>what if</dt><dd><a href={`${href(['whatif'])}${search({ e: JSON.stringify([{ edit: 'scale_need', need: need?.key?.id, factor: 2 }]) })}`}>it asked for twice as much</a></dd></div>
                  </dl>
                </Card>
                <Card title="Its history">
                  <Ask of={past} what="its history">
                    {(found) => (found.groups.length ? <Feed groups={found.groups} now={now} most={60} /> : <Empty>The record has no decision about it.</Empty>)}
                  </Ask>
                </Card>
              </div>
            </div>
          );
        }}
      </Ask>
    </>
  );
}
