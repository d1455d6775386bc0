// Timeline: any recorded cycle as it was, and two of them side by side.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { Refused, get } from '../api';
import { Chart } from '../chart';
import { cents, centsMore, delta, hourly, int, price, short, usd, word } from '../format';
import { useLive } from '../live';
import { go, href, replace, usePlace } from '../router';
import type { AsOf, Group, Lane, NeedRef, SupplyCell } from '../types';
import { Ask, Card, Cli, Empty, Head, useAsk } from '../ui';
import { Feed, Supply, supplyByType } from './fleet';

interface Moment {
  as_of: AsOf;
  time: string;
  lanes: Lane[];
  supply: SupplyCell[] | null;
  usd_per_hour: number | null;
  short: { data: { need: NeedRef | null; priority: number }; reason: string; misses: string }[];
  groups: Group[];
}

/** A moment as it was recorded. The newest cycles may not be on disk yet: they are asked for again for a while. */
async function moment(at: string, shard: string | undefined, last: number, signal: AbortSignal): Promise<Moment> {
  for (let tries = 1; ; tries++) {
    try {
      return await get<Moment>('moment', { at, shard }, signal);
    } catch (error) {
      const isOnItsWay = error instanceof Refused && error.code === 'not_found' && Number(at) + 2 >= last;
      if (!isOnItsWay || tries === 40 || signal.aborted) throw error;
      await new Promise((done) => window.setTimeout(done, 500));
    }
  }
}

function useMoment(at: string | undefined, shard: string | undefined, last: number) {
  return useAsk<Moment | null>((signal) => (at ? moment(at, shard, last, signal) : Promise.resolve(null)), `moment ${at} ${shard}`);
}

function Then(props: { moment: Moment }): JSX.Element {
  const { moment } = props;
  return (
    <div class="two">
      <div class="stack">
        <Card title="Clusters then">
          <table>
            <thead><tr><th scope="col">Cluster</th><th scope="col" class="num">machines</th><th scope="col" class="num">$/h</th><th scope="col" class="num">needs</th><th scope="col" class="num">unmet</th></tr></thead>
            <tbody>
              {moment.lanes.map((lane) => (
                <tr><th scope="row">{lane.cluster}</th><td class="num">{int(lane.machines)}</td><td class="num">{cents(lane.usd_per_hour)}</td><td class="num">{int(lane.needs)}</td><td class={lane.unmet ? 'num bad' : 'num'}>{int(lane.unmet)}</td></tr>
              ))}
            </tbody>
          </table>
        </Card>
        <Card title="Supply then">{moment.supply ? <Supply cells={moment.supply} /> : <Empty>The build that wrote this record did not keep it.</Empty>}</Card>
        <Card title="Short then">
          {moment.short.length ? (
            <table>
              <thead><tr><th scope="col">Need</th><th scope="col">cluster</th><th scope="col">because</th><th scope="col">misses</th></tr></thead>
              <tbody>
                {moment.short.slice(0, 50).map((one) => (
                  <tr><th scope="row"><a href={href(['need', one.data.need?.id ?? ''], { at: String(moment.as_of.cycle) })}>{one.data.need?.group || one.data.need?.id}</a></th><td>{one.data.need?.cluster}</td><td class="bad">{one.reason}</td><td>{one.misses}</td></tr>
                ))}
              </tbody>
            </table>
          ) : <Empty>Nothing was short.</Empty>}
        </Card>
      </div>
      <Card title={`What cycle ${moment.as_of.cycle} decided`}>
        {moment.groups.length ? <Feed groups={moment.groups} now={moment.as_of.cycle_time} most={100} /> : <Empty>Nothing.</Empty>}
      </Card>
    </div>
  );
}

interface Offer {
  data: { provider: string; instance_type: string; capacity_type: string | null; zone: string; min_usd_per_hour: number };
}
/** Prices told of at most. */
const PRICES = 8;

/** Of what could be bought then and now: what has another price. */
function Prices(props: { a: Moment; b: Moment; shard: string | undefined }): JSX.Element {
  const [from, to] = [String(props.a.as_of.cycle), String(props.b.as_of.cycle)];
  const ask = (at: string, signal: AbortSignal) => get<{ rows: Offer[] }>('offers', { at, shard: props.shard }, signal);
  const asked = useAsk(async (signal) => Promise.all([ask(from, signal), ask(to, signal)]), `prices ${from} ${to} ${props.shard}`);
  return (
    <Ask of={asked} what="prices">
      {([then, now]) => {
        const sort = ({ data }: Offer) => [data.instance_type, word(data.capacity_type), data.zone].join(' ');
        const before = new Map(then.rows.map((row) => [`${row.data.provider} ${sort(row)}`, row.data.min_usd_per_hour]));
        const rows = now.rows.flatMap((row) => {
          const was = before.get(`${row.data.provider} ${sort(row)}`);
          const is = row.data.min_usd_per_hour;
          return was === undefined || Math.abs(was - is) < 1e-9 ? [] : [{ sort: sort(row), was, is }];
        }).sort((x, y) => Math.abs(y.is / y.was - 1) - Math.abs(x.is / x.was - 1));
        if (!rows.length) return <p class="note">Nothing that could be bought at both moments has another price.</p>;
        return (
          <table>
            <thead><tr><th scope="col">Offer</th><th scope="col" class="num">then</th><th scope="col" class="num">now</th><th scope="col" class="num">change</th></tr></thead>
            <tbody>
              {rows.slice(0, PRICES).map((row) => (
                <tr><th scope="row">{row.sort}</th><td class="num">{price(row.was)}</td><td class="num">{price(row.is)}</td><td class={row.is > row.was ? 'num bad' : 'num good'}>{row.was > 0 ? `${row.is > row.was ? '+' : '-'}${Math.abs(100 * (row.is / row.was - 1)).toFixed(1)} %` : '–'}</td></tr>
              ))}
              {rows.length > PRICES && <tr><td colSpan={4} class="dim">and {int(rows.length - PRICES)} more</td></tr>}
            </tbody>
          </table>
        );
      }}
    </Ask>
  );
}

function Compare(props: { a: Moment; b: Moment; shard: string | undefined }): JSX.Element {
  const { a, b } = props;
  const clusters = [...new Set([...a.lanes, ...b.lanes].map((lane) => lane.cluster))].sort();
  const of = (moment: Moment, cluster: string) => moment.lanes.find((lane) => lane.cluster === cluster);
  const keys = (moment: Moment) => new Set(moment.short.map((one) => `${one.data.need?.cluster}/${one.data.need?.group || one.data.need?.id}`));
  const [before, after] = [keys(a), keys(b)];
  const fell = [...after].filter((key) => !before.has(key));
  const rose = [...before].filter((key) => !after.has(key));
  const types = supplyByType([...(a.supply ?? []), ...(b.supply ?? [])]).map((row) => row.type);
  const row = (moment: Moment, type: string | null) => supplyByType(moment.supply ?? []).find((one) => one.type === type);
  const differs = (x: number, y: number) => (Math.abs(x - y) < 1e-9 ? 'num dim' : 'num strong');
  return (
    <Card title={`Cycle ${a.as_of.cycle} (${a.time}) against cycle ${b.as_of.cycle} (${b.time})`} aside={<Cli cmd={`bigfleet diff ${a.as_of.cycle} ${b.as_of.cycle}`} />}>
      <div class="two even">
        <div>
          <h3>Clusters</h3>
          <table>
            <thead><tr><th scope="col">Cluster</th><th scope="col" class="num">machines</th><th scope="col" class="num">$/h</th><th scope="col" class="num">needs</th><th scope="col" class="num">unmet</th></tr></thead>
            <tbody>
              {clusters.map((cluster) => {
                const [x, y] = [of(a, cluster), of(b, cluster)];
                return (
                  <tr>
                    <th scope="row">{cluster}</th>
                    <td class={differs(x?.machines ?? 0, y?.machines ?? 0)}>{delta((y?.machines ?? 0) - (x?.machines ?? 0))}</td>
                    <td class={differs(x?.usd_per_hour ?? 0, y?.usd_per_hour ?? 0)}>{centsMore((y?.usd_per_hour ?? 0) - (x?.usd_per_hour ?? 0))}</td>
                    <td class={differs(x?.needs ?? 0, y?.needs ?? 0)}>{delta((y?.needs ?? 0) - (x?.needs ?? 0))}</td>
                    <td class={differs(x?.unmet ?? 0, y?.unmet ?? 0)}>{delta((y?.unmet ?? 0) - (x?.unmet ?? 0))}</td>
                  </tr>
                );
              })}
              <tr class="sum"><th scope="row">fleet</th><td class="num">{delta(b.lanes.reduce((s, l) => s + l.machines, 0) - a.lanes.reduce((s, l) => s + l.machines, 0))}</td><td class="num">{centsMore((b.usd_per_hour ?? 0) - (a.usd_per_hour ?? 0))}</td><td class="num" /><td class="num" /></tr>
            </tbody>
          </table>
        </div>
        <div>
          <h3>Supply</h3>
          <table>
            <thead><tr><th scope="col">Capacity</th><th scope="col" class="num">bound</th><th scope="col" class="num">moving</th><th scope="col" class="num">idle</th><th scope="col" class="num">failed</th><th scope="col" class="num">$/h</th></tr></thead>
            <tbody>
              {types.map((type) => {
                const [x, y] = [row(a, type), row(b, type)];
                return (
                  <tr>
                    <th scope="row">{type?.replaceAll('_', '-') ?? '–'}</th>
                    {(['bound', 'moving', 'idle', 'failed'] as const).map((key) => <td class={differs(x?.[key] ?? 0, y?.[key] ?? 0)}>{delta((y?.[key] ?? 0) - (x?.[key] ?? 0))}</td>)}
                    <td class={differs(x?.usd ?? 0, y?.usd ?? 0)}>{centsMore((y?.usd ?? 0) - (x?.usd ?? 0))}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
          <h3>Prices</h3>
          <Prices a={a} b={b} shard={props.shard} />
          <h3>Needs</h3>
          <p class="note">{fell.length ? `Short now and not before: ${fell.slice(0, 10).join(', ')}${fell.length > 10 ? ` and ${int(fell.length - 10)} more` : ''}.` : 'None fell short.'} {rose.length ? `Covered again: ${rose.slice(0, 10).join(', ')}.` : ''}</p>
        </div>
      </div>
    </Card>
  );
}

/** What it takes to go back to a moment, and what cannot be undone. */
function Back(props: { then: Moment; now: Moment; shard: string | undefined }): JSX.Element {
  const { then, now } = props;
  const [from, to] = [then.as_of.cycle + 1, now.as_of.cycle];
  const asked = useAsk<{ groups: Group[] }>((signal) => get('decisions', { from, to, fate: 'begun', record: true, limit: 500, shard: props.shard }, signal), `back ${from} ${to}`);
  return (
    <Card title={`Going back to cycle ${then.as_of.cycle}`} aside={<Cli cmd={`bigfleet rollback --to ${then.as_of.cycle} --look`} />}>
      <Ask of={asked} what="what was done since">
        {({ groups }) => {
          const count = (kind: string) => groups.filter((one) => one.data.kind === kind).reduce((sum, one) => sum + one.count, 0);
          const all = groups.reduce((sum, one) => sum + one.count, 0);
          const undone: [string, number, string][] = [
            ['bought', count('provision'), 'stay until nobody wants them and their hold is over; then they are given back by themselves'],
            ['bound', count('bootstrap'), 'are reclaimed by themselves once what is asked for is again what it was'],
            ['reclaimed', count('reclaim'), 'their pods were evicted and run elsewhere: that is not undone'],
            ['preempted', count('preempt'), 'their pods were interrupted: that is not undone'],
            ['given back', count('delete'), 'are gone: the like of them is bought again, at the price of that day'],
          ];
          return (
            <>
              <p class="note">{all ? `${int(all)}${all >= 500 ? ' or more' : ''} actions were begun since.` : 'No action was begun since: there is nothing to put back.'} A shard decides from what is asked for and what there is, so the way back is to ask as before:</p>
              <ol class="steps">
                <li><a href={href(['system'])}>Hold still</a>: a pause, so that nothing more is done meanwhile.</li>
                <li>Put demand and policy back in the clusters; the difference is above.</li>
                <li>Look at <a href={href(['system'])}>the next cycle, if it ran now</a>: that is the plan. Then resume.</li>
              </ol>
              {all > 0 && (
                <table>
                  <thead><tr><th scope="col">Since then</th><th scope="col" class="num">machines</th><th scope="col">going back</th></tr></thead>
                  <tbody>{undone.filter(([, n]) => n > 0).map(([what, n, says]) => <tr><th scope="row">{what}</th><td class="num">{int(n)}</td><td>{says}</td></tr>)}</tbody>
                </table>
              )}
            </>
          );
        }}
      </Ask>
    </Card>
  );
}

export function Timeline(): JSX.Element {
  const { query } = usePlace();
  const { state, columns, hello, feed } = useLive();
  const at = query.get('at') ?? undefined;
  const against = query.get('against') ?? undefined;
  // Cycles are counted by each shard for itself: of several, the first is looked at.
  const shard = (state?.links.length ?? 1) > 1 ? state?.links[0]?.shard : undefined;
  const summary = state?.summary ?? null;
  const last = summary?.as_of?.cycle ?? 0;
  const found = useMoment(at, shard, last);
  const other = useMoment(against, shard, last);
  const version = hello?.shards[0]?.version;
  const oldest = Number(version?.oldest_cycle ?? 0) || 1;
  const recording = version?.recording === true;
  const shown = found.data?.as_of.cycle ?? last;
  const [typed, setTyped] = useState('');
  const look = (cycle: number) => replace(['timeline'], { at: String(Math.min(Math.max(cycle, oldest), last)), against });
  const mark = found.data?.as_of.cycle_time ? Date.parse(found.data.as_of.cycle_time) / 1000 : undefined;
  const pick = (time: number) => go(['timeline'], { at: `t${Math.round(time * 1000)}000000`, against });
  const time = columns?.time ?? [];
  return (
    <>
      <Head title="Timeline" cmd={at ? `bigfleet get clusters --at ${shown}` : 'bigfleet get decisions --all'} />
      {!recording && <p class="note warn">This shard keeps no record, so it cannot look back: run it with a data folder.</p>}
      <Card>
        <div class="scrub">
          <button onClick={() => look(shown - 1)} disabled={!recording || shown <= oldest} aria-label="One cycle back">‹</button>
          <input type="range" aria-label="Cycle" min={oldest} max={Math.max(oldest, last)} value={shown} disabled={!recording} onChange={(event) => look(Number(event.currentTarget.value))} />
          <button onClick={() => look(shown + 1)} disabled={!recording || shown >= last} aria-label="One cycle on">›</button>
          <form onSubmit={(event) => { event.preventDefault(); if (Number(typed) > 0) look(Number(typed)); }}>
            <label>Cycle <input class="short" inputMode="numeric" value={typed} placeholder={String(shown)} onInput={(event) => setTyped(event.currentTarget.value.replace(/\D/g, ''))} /></label>
          </form>
          {/* The newest cycle may not be on disk yet: the one before it is. */}
          {at && !against && <button onClick={() => go(['timeline'], { at: String(Math.max(oldest, last - 1)), against: String(shown) })}>Compare with now</button>}
          {against && <button onClick={() => go(['timeline'], { at })}>End comparison</button>}
          {at && <button class="act" onClick={() => go(['timeline'])}>Live (L)</button>}
        </div>
        <p class="dim small-text">Recorded: cycles {int(oldest)} to {int(last)}. Drag, type a cycle, or click into a chart.</p>
        {time.length > 1 ? (
          <div class="charts">
            <Chart title="Spend, $/h" time={time} height={150} format={usd} axis={short} mark={mark} onPick={pick} lines={[{ label: 'all', values: columns!.usd, color: '--accent', fill: true }, { label: 'idle', values: columns!.idle_usd, color: '--idle' }]} />
            <Chart title="Needs that are short" time={time} height={150} whole format={int} mark={mark} onPick={pick} lines={[{ label: 'unmet', values: columns!.unmet, color: '--bad', fill: true }, { label: 'short', values: columns!.short, color: '--warn' }]} />
            <Chart title="Actions begun" time={time} height={150} whole format={int} mark={mark} onPick={pick} lines={[{ label: 'actions', values: columns!.actions, color: '--kind', bars: true }, { label: 'withheld', values: columns!.withheld, color: '--warn' }]} />
            <Chart title="Asked for, of what bound machines provide" time={time} height={150} format={(n) => `${n.toFixed(0)} %`} mark={mark} onPick={pick} lines={[{ label: 'cpu', values: columns!.cpu, color: '--accent', fill: true }, { label: 'memory', values: columns!.memory, color: '--warn' }]} />
            <Chart title="Bound machines" time={time} height={150} whole format={int} mark={mark} onPick={pick} lines={[{ label: 'bound', values: columns!.bound, color: '--good', fill: true }]} />
          </div>
        ) : <Empty>The history begins when the page's server does; it will be drawn here.</Empty>}
      </Card>
      {!at && (
        <Card title="The newest decisions">
          <Feed groups={feed} now={summary?.as_of?.now ?? null} most={50} />
        </Card>
      )}
      {at && (
        <Ask of={found} what="moment">
          {(moment) => moment && (
            <>
              {against && <Ask of={other} what="other moment">{(first) => first && <><Compare a={first} b={moment} shard={shard} /><Back then={first} now={moment} shard={shard} /></>}</Ask>}
              <p class="say head">Cycle {int(moment.as_of.cycle)}, {moment.time}{moment.usd_per_hour !== null ? `: ${hourly(moment.usd_per_hour)}` : ''}</p>
              <Then moment={moment} />
            </>
          )}
        </Ask>
      )}
    </>
  );
}
