// Cost: where the money goes now, and how it went.
import type { JSX } from 'preact';
import { get } from '../api';
import { Chart } from '../chart';
import { hourly, int, percent, short, usd, word } from '../format';
import { useLive } from '../live';
import { href } from '../router';
import { Ask, Card, Empty, Head, useAsk } from '../ui';

interface Costs {
  data: {
    usd_per_hour: number;
    idle_usd_per_hour: number;
    moving_usd_per_hour: number;
    failed_usd_per_hour: number;
    cells: { cluster: string; capacity_type: string | null; machines: number; usd_per_hour: number }[];
  };
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
                          {types.map((type) => <td class="num">{of(cluster, type) ? usd(of(cluster, type)) : <span class="dim">–</span>}</td>)}
                          <td class="num strong">{usd(row(cluster))}</td>
                          <td class="num">{usd(row(cluster) * 24)}</td>
                        </tr>
                      ))}
                      <tr class="sum"><th scope="row">fleet</th>{types.map((type) => <td class="num">{usd(clusters.reduce((sum, cluster) => sum + of(cluster, type), 0))}</td>)}<td class="num strong">{usd(data.usd_per_hour)}</td><td class="num">{usd(data.usd_per_hour * 24)}</td></tr>
                    </tbody>
                  </table>
                </Card>
                <Card title="Waste by cause">
                  <table>
                    <thead><tr><th scope="col">Cause</th><th scope="col" class="num">$/h</th><th scope="col" class="num">share</th><th scope="col" class="wide">what it is</th></tr></thead>
                    <tbody>
                      {waste.map(([name, n, what, to]) => <tr><th scope="row"><a href={to}>{name}</a></th><td class={n > 0 ? 'num warn' : 'num dim'}>{usd(n)}</td><td class="num">{percent(n / Math.max(1e-9, data.usd_per_hour))}</td><td class="wide">{what}</td></tr>)}
                      <tr class="sum"><th scope="row">in use</th><td class="num">{usd(used)}</td><td class="num">{percent(used / Math.max(1e-9, data.usd_per_hour))}</td><td class="wide">bound to clusters</td></tr>
                    </tbody>
                  </table>
                </Card>
              </div>
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
