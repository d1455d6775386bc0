// Policy: what clusters declare, added up to classes, with what each class has and costs.
import type { JSX } from 'preact';
import { get } from '../api';
import { int, usd } from '../format';
import { href, replace, usePlace } from '../router';
import { useLive } from '../live';
import { Ask, Card, Empty, Head, useAsk } from '../ui';

interface Found {
  rows: { priority: number; cluster: string; interruption_penalty: string; reclamation_penalty: string; needs: number; gangs: number; unmet: number; machines: number; usd_per_hour: number; example: string }[];
  classes: number;
  needs: number;
  read: number;
}

export function Policy(): JSX.Element {
  const { query } = usePlace();
  const { state } = useLive();
  const cluster = query.get('cluster') ?? '';
  const asked = useAsk<Found>((signal) => get('policy', { cluster }, signal), cluster, 10_000);
  return (
    <>
      <Head title="Policy" cmd={`bigfleet get needs -o wide${cluster ? ` --cluster ${cluster}` : ''}`}>
        <div class="filters">
          <label>Cluster <select value={cluster} onChange={(event) => replace(['policy'], { cluster: event.currentTarget.value })}><option value="">all</option>{(state?.summary?.lanes ?? []).map((lane) => <option value={lane.cluster}>{lane.cluster}</option>)}</select></label>
        </div>
      </Head>
      <Ask of={asked} what="policy">
        {(found) => {
          const most = Math.max(1, ...found.rows.map((row) => row.machines));
          const priorities = new Set(found.rows.map((row) => row.priority));
          const pinned = found.rows.filter((row) => row.interruption_penalty === 'pinned');
          return (
            <>
              <Card title="Who goes first, and what disturbing them costs">
                {found.rows.length ? (
                  <table>
                    <thead><tr><th scope="col" class="num">Priority</th><th scope="col">cluster</th><th scope="col" class="num">interruption</th><th scope="col" class="num wide">reclamation</th><th scope="col" class="num">needs</th><th scope="col" class="num">unmet</th><th scope="col" class="num">machines</th><th scope="col" class="wide" aria-label="Share" /><th scope="col" class="num">$/h</th></tr></thead>
                    <tbody>
                      {found.rows.map((row) => (
                        <tr>
                          <th scope="row" class="num">{int(row.priority)}</th>
                          <td><a href={href(['need', row.example])} title="One need of this class">{row.cluster}</a></td>
                          <td class="num">{row.interruption_penalty}</td>
                          <td class="num wide">{row.reclamation_penalty}</td>
                          <td class="num">{int(row.needs)}{row.gangs ? <span class="dim"> ({int(row.gangs)} {row.gangs === 1 ? 'gang' : 'gangs'})</span> : null}</td>
                          <td class={row.unmet ? 'num bad' : 'num dim'}>{int(row.unmet)}</td>
                          <td class="num">{int(row.machines)}</td>
                          <td class="wide meter"><span style={{ width: `${(100 * row.machines) / most}%` }} /></td>
                          <td class="num strong">{usd(row.usd_per_hour)}</td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                ) : <Empty>Nobody asks for anything yet.</Empty>}
                {found.read < found.needs && <p class="note warn">Read {int(found.read)} of {int(found.needs)} needs.</p>}
              </Card>
              <Card title="Noticed">
                <ul class="noticed">
                  <li class={priorities.size === 1 && found.rows.length > 1 ? 'warn' : ''}>{priorities.size === 1 && found.rows.length > 1 ? 'Every class has the same priority: nothing goes first, and nobody is ever preempted.' : `${int(priorities.size)} priorities in use.`}</li>
                  <li class={pinned.length ? 'warn' : ''}>{pinned.length ? `${int(pinned.reduce((sum, row) => sum + row.machines, 0))} machines are pinned: no risk is worth it to them, at any price.` : 'Nothing is pinned.'}</li>
                </ul>
              </Card>
            </>
          );
        }}
      </Ask>
    </>
  );
}
