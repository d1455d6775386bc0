// Cost: where the money goes now, and how it went.
import type { JSX } from 'preact';
import { get } from '../api';
import { Chart } from '../chart';
import { cents, hourly, int, percent, short, usd, word } from '../format';
import { useLive } from '../live';
import { href } from '../router';
import type { Part } from '../types';
import { Ask, Card, Cli, Empty, Head, Story, useAsk } from '../ui';

interface Costs {
  story?: Part[];
  data: {
    usd_per_hour: number;
    idle_usd_per_hour: number;
    moving_usd_per_hour: number;
    failed_usd_per_hour: number;
    cells: { cluster: string; capacity_type: string | null; machines: number; usd_per_hour: number }[];
    parts?: { cluster: string; cause: string; nano_usd: number; machines: number }[];
  };
}
/** What each sort of money buys, and whether it is of use. */
const CAUSES: [string, string, boolean][] = [
  ['used', 'bound, and asked for', false],
  ['above_demand', 'bound beyond what its need asks for: machines come whole', true],
  ['unclaimed', 'bound, and no need claims it', true],
  ['starting', 'on its way to a cluster', true],
  ['draining', 'being emptied', true],
  ['idle_hold', 'rented and idle, held in case it is wanted again', true],
  ['idle_fixed', 'owned or reserved, and idle', true],
  ['giving_back', 'on its way back to its provider', true],
  ['failed', 'broken, and still paid for', true],
];

function Causes(props: { parts: { cause: string; nano_usd: number; machines: number }[]; total: number }): JSX.Element {
  const rows = CAUSES.map(([cause, what, waste]) => {
    const mine = props.parts.filter((part) => part.cause === cause);
    return { cause, what, waste, usd: mine.reduce((sum, part) => sum + part.nano_usd, 0) / 1e9, machines: mine.reduce((sum, part) => sum + part.machines, 0) };
  }).filter((row) => row.usd !== 0 || row.machines !== 0);
  return (
    <table>
      <thead><tr><th scope="col">Cause</th><th scope="col" class="num">$/h</th><th scope="col" class="num">share</th><th scope="col" class="num">machines</th><th scope="col" class="wide">what it is</th></tr></thead>
      <tbody>
        {rows.map((row) => (
          <tr><th scope="row">{row.cause.replaceAll('_', ' ')}</th><td class={row.waste ? 'num warn' : 'num'}>{cents(row.usd)}</td><td class="num">{percent(row.usd / Math.max(1e-9, props.total))}</td><td class="num">{row.machines.toFixed(1)}</td><td class="wide">{row.what}</td></tr>
        ))}
        <tr class="sum"><th scope="row">all</th><td class="num">{cents(rows.reduce((sum, row) => sum + row.usd, 0))}</td><td class="num" /><td class="num">{rows.reduce((sum, row) => sum + row.machines, 0).toFixed(0)}</td><td class="wide" /></tr>
      </tbody>
    </table>
  );
}

function Judged(): JSX.Element {
  const asked = useAsk<Costs>((signal) => get('costs', { judge: true }, signal), 'judged', 30_000);
  return (
    <Card title="How good the decisions are, and what protection costs" aside={<Cli cmd="bigfleet cost" />}>
      <Ask of={asked} what="judgement">
        {(found) => (found.story?.length ? <Story parts={found.story} data={found.data} /> : <Empty>This shard is too old to judge.</Empty>)}
      </Ask>
    </Card>
  );
}

const TYPES = ['bare_metal', 'reserved', 'on_demand', 'spot'];

export function Cost(): JSX.Element {
  const { columns } = useLive();
  const asked = useAsk<Costs>((signal) => get('costs', {}, signal), 'costs', 3000);
  const time = columns?.time ?? [];
  return (
    <>
      <Head title="Cost" cmd="bigfleet cost" />
      <Ask of={asked} what="costs">
        {({ data }) => {
          const clusters = [...new Set(data.cells.map((cell) => cell.cluster))].sort((a, b) => (a === '' ? 1 : b === '' ? -1 : a.localeCompare(b)));
          const types = TYPES.filter((type) => data.cells.some((cell) => cell.capacity_type === type));
          const of = (cluster: string, type: string) => data.cells.filter((cell) => cell.cluster === cluster && cell.capacity_type === type).reduce((sum, cell) => sum + cell.usd_per_hour, 0);
          const row = (cluster: string) => data.cells.filter((cell) => cell.cluster === cluster).reduce((sum, cell) => sum + cell.usd_per_hour, 0);
          const waste: [string, number, string, string][] = [
            ['idle', data.idle_usd_per_hour, 'hardware bound to nobody: owned, or held in case it is wanted again', href(['machines'], { state: 'idle' })],
            ['moving', data.moving_usd_per_hour, 'being made, drained or given back: paid for and of no use meanwhile', href(['machines'], { state: 'draining' })],
            ['failed', data.failed_usd_per_hour, 'broken, and still paid for', href(['machines'], { state: 'failed' })],
          ];
          const used = data.usd_per_hour - waste.reduce((sum, [, n]) => sum + n, 0);
          return (
            <>
              <div class="two even">
                <Card title="Now, by cluster and capacity">
                  <table>
                    <thead><tr><th scope="col">Cluster</th>{types.map((type) => <th scope="col" class="num">{word(type)}</th>)}<th scope="col" class="num">$/h</th><th scope="col" class="num">$/day</th></tr></thead>
                    <tbody>
                      {clusters.map((cluster) => (
                        <tr>
                          <th scope="row">{cluster ? <a href={href(['cluster', cluster])}>{cluster}</a> : <span class="dim">bound to nobody</span>}</th>
                          {types.map((type) => <td class="num">{of(cluster, type) ? cents(of(cluster, type)) : <span class="dim">–</span>}</td>)}
                          <td class="num strong">{cents(row(cluster))}</td>
                          <td class="num">{cents(row(cluster) * 24)}</td>
                        </tr>
                      ))}
                      <tr class="sum"><th scope="row">fleet</th>{types.map((type) => <td class="num">{cents(clusters.reduce((sum, cluster) => sum + of(cluster, type), 0))}</td>)}<td class="num strong">{cents(data.usd_per_hour)}</td><td class="num">{cents(data.usd_per_hour * 24)}</td></tr>
                    </tbody>
                  </table>
                </Card>
                <Card title="Waste by cause">
                  {data.parts?.length ? <Causes parts={data.parts} total={data.usd_per_hour} /> : <table>
                    <thead><tr><th scope="col">Cause</th><th scope="col" class="num">$/h</th><th scope="col" class="num">share</th><th scope="col" class="wide">what it is</th></tr></thead>
                    <tbody>
                      {waste.map(([name, n, what, to]) => <tr><th scope="row"><a href={to}>{name}</a></th><td class={n > 0 ? 'num warn' : 'num dim'}>{cents(n)}</td><td class="num">{percent(n / Math.max(1e-9, data.usd_per_hour))}</td><td class="wide">{what}</td></tr>)}
                      <tr class="sum"><th scope="row">in use</th><td class="num">{cents(used)}</td><td class="num">{percent(used / Math.max(1e-9, data.usd_per_hour))}</td><td class="wide">bound to clusters</td></tr>
                    </tbody>
                  </table>}
                </Card>
              </div>
              <Judged />
              <Card title="Over time">
                {time.length > 1 ? (
                  <Chart title={`Spend, $/h; now ${hourly(data.usd_per_hour)}`} time={time} height={240} format={usd} axis={short} lines={[{ label: 'all', values: columns!.usd, color: '--accent', fill: true }, { label: 'idle', values: columns!.idle_usd, color: '--idle' }]} />
                ) : <Empty>The history begins when the page's server does; it will be drawn here.</Empty>}
                <p class="dim small-text">{int(time.length)} moments kept by the server of this page.</p>
              </Card>
            </>
          );
        }}
      </Ask>
    </>
  );
}
