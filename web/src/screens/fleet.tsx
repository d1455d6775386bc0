// Fleet: what there is, who has it, what it costs, and what is being decided.
import type { JSX } from 'preact';
import { Chart } from '../chart';
import { ago, amount, cents, clock, hourly, int, usd, word } from '../format';
import { useLive } from '../live';
import { href } from '../router';
import type { Group, Lane, ResourceUse, Summary, SupplyCell } from '../types';
import { Bar, Card, Empty, Head, Linked, Pill, namesIn } from '../ui';

const MOVING = new Set(['creating', 'configuring', 'draining', 'deleting']);
const ORDER = ['bare_metal', 'reserved', 'on_demand', 'spot', null];

export function supplyByType(cells: SupplyCell[]) {
  return ORDER.map((type) => {
    const mine = cells.filter((cell) => cell.capacity_type === type);
    const count = (is: (state: string | null) => boolean) =>
      mine.filter((cell) => is(cell.state)).reduce((sum, cell) => sum + cell.machines, 0);
    return {
      type,
      bound: count((state) => state === 'configured'),
      moving: count((state) => MOVING.has(state ?? '')),
      idle: count((state) => state === 'idle'),
      failed: count((state) => state === 'failed'),
      quota: count((state) => state === 'speculative'),
      usd: mine.reduce((sum, cell) => sum + cell.usd_per_hour, 0),
    };
  }).filter((row) => row.bound + row.moving + row.idle + row.failed + row.quota > 0);
}

export function Supply(props: { cells: SupplyCell[]; links?: boolean }): JSX.Element {
  const rows = supplyByType(props.cells);
  if (!rows.length) return <Empty>No machine and no quota: no provider has been heard yet.</Empty>;
  return (
    <table class="supply">
      <thead>
        <tr>
          <th scope="col">Capacity</th>
          <th scope="col" class="num">bound</th>
          <th scope="col" class="num">moving</th>
          <th scope="col" class="num">idle</th>
          <th scope="col" class="num">failed</th>
          <th scope="col" class="num">quota</th>
          <th scope="col" class="num">$/h</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => {
          const there = row.bound + row.moving + row.idle + row.failed;
          return (
            <tr>
              <th scope="row">
                <a href={href(['machines'], { capacity: row.type ?? undefined })}>{word(row.type)}</a>
                <Bar
                  label={word(row.type)}
                  total={there + row.quota}
                  parts={[
                    { n: row.bound, tone: 'b-bound', title: 'bound' },
                    { n: row.moving, tone: 'b-moving', title: 'moving' },
                    { n: row.idle, tone: 'b-idle', title: 'idle' },
                    { n: row.failed, tone: 'b-failed', title: 'failed' },
                    { n: row.quota, tone: 'b-quota', title: 'quota' },
                  ]}
                />
              </th>
              <td class="num k-bound">{int(row.bound)}</td>
              <td class="num k-moving">{int(row.moving)}</td>
              <td class="num k-idle">{int(row.idle)}</td>
              <td class={row.failed ? 'num bad' : 'num k-failed'}>{int(row.failed)}</td>
              <td class="num dim">{int(row.quota)}</td>
              <td class="num strong">{cents(row.usd)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/** Short of what is asked for, or how much of what is provided is asked for. */
function share(line: ResourceUse): { part: number; text: string; tone: string } {
  if (line.provided <= 0) return line.asked > 0 ? { part: 0, text: 'none', tone: 'bad' } : { part: 0, text: '–', tone: 'dim' };
  const part = line.asked / line.provided;
  return { part, text: `${Math.round(100 * part)} %`, tone: part > 1.0005 ? 'bad' : '' };
}

/** Asked for against provided, resource by resource. */
function Use(props: { lines: ResourceUse[] }): JSX.Element {
  // How many pods fit a machine is a bound, not something anybody provides: told where it is asked for.
  const lines = props.lines.filter((line) => line.asked > 0 || (line.provided > 0 && line.resource !== 'pods'));
  if (!lines.length) return <Empty>Nothing is asked for, and nothing is bound.</Empty>;
  return (
    <table class="use">
      <thead>
        <tr><th scope="col">Resource</th><th scope="col" class="num">asked for</th><th scope="col" class="num">provided</th><th scope="col" class="num">idle</th><th scope="col" class="num">used</th></tr>
      </thead>
      <tbody>
        {lines.map((line) => {
          const { part, text, tone } = share(line);
          return (
            <tr>
              <th scope="row">
                {line.resource}
                <Bar
                  label={`${line.resource}: ${text} of what is provided is asked for`}
                  total={100}
                  parts={[
                    { n: Math.min(100, Math.round(100 * part)), tone: part > 1.0005 ? 'b-failed' : 'b-bound', title: '% asked for' },
                    { n: Math.max(0, 100 - Math.round(100 * part)), tone: 'b-quota', title: '% provided and not asked for' },
                  ]}
                />
              </th>
              <td class="num">{amount(line.asked, line.resource)}</td>
              <td class="num">{amount(line.provided, line.resource)}</td>
              <td class="num dim">{amount(line.idle, line.resource)}</td>
              <td class={`num strong ${tone}`}>{text}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/** A cluster's, in a cell: cpu and memory. */
function LaneUse(props: { lane: Lane }): JSX.Element {
  const said = ['cpu', 'memory'].map((name) => {
    const line = props.lane.use?.find((one) => one.resource === name);
    return line ? share(line).text : '–';
  });
  const title = (props.lane.use ?? []).map((line) => `${line.resource}: ${amount(line.asked, line.resource)} asked for, ${amount(line.provided, line.resource)} provided`).join('; ');
  return <span title={title}>{said.join(' / ')}</span>;
}

function laneState(lane: Lane): JSX.Element {
  if (lane.unmet) return <Pill tone="bad">{int(lane.unmet)} unmet</Pill>;
  if (lane.short) return <Pill tone="warn">{int(lane.short)} waiting</Pill>;
  return <Pill tone="good">all covered</Pill>;
}

/** The mode of a cluster, and what else keeps the shard from acting on it. */
export function laneMode(lane: Lane, summary: Summary): JSX.Element {
  const held = lane.paused ? <Pill tone="warn">paused</Pill>
    : summary.dry_run ? <Pill tone="info">dry run</Pill>
    : !lane.connected ? <Pill tone="bad">not connected</Pill>
    : lane.held ? <Pill tone="warn" title="Its last report asks for far less and waits to be confirmed">held</Pill>
    : null;
  const isAuto = !lane.mode || lane.mode === 'auto';
  return <>{(!held || !isAuto) && <ModePill mode={lane.mode} mixed={lane.mode_mixed} />} {held}</>;
}

const TRUST: Record<string, string> = {
  observe: 'Nothing is executed: bigfleet mode --report says what would be',
  approve: 'What it wants to do waits for a yes: bigfleet get proposals',
};

/** How much is done without asking. */
export function ModePill(props: { mode: string | null | undefined; mixed: boolean | undefined }): JSX.Element {
  const mode = props.mode ?? 'auto';
  const said = props.mixed ? `${mode}, in part` : mode;
  return mode in TRUST ? <Pill tone="info" title={TRUST[mode]}>{said}</Pill> : <Pill>{said}</Pill>;
}

export function Lanes(props: { lanes: Lane[]; summary: Summary }): JSX.Element {
  if (!props.lanes.length) return <Empty>No cluster has reported yet.</Empty>;
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Cluster</th>
          <th scope="col" class="num">machines</th>
          <th scope="col" class="num">$/h</th>
          <th scope="col" class="num">needs</th>
          <th scope="col" class="num wide">CPU / memory used</th>
          <th scope="col">demand</th>
          <th scope="col">mode</th>
        </tr>
      </thead>
      <tbody>
        {props.lanes.map((lane) => (
          <tr>
            <th scope="row"><a href={href(['cluster', lane.cluster])}>{lane.cluster}</a></th>
            <td class="num">{int(lane.machines)}</td>
            <td class="num">{cents(lane.usd_per_hour)}</td>
            <td class="num">{int(lane.needs)}</td>
            <td class="num wide"><LaneUse lane={lane} /></td>
            <td>{laneState(lane)}</td>
            <td>{laneMode(lane, props.summary)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function Feed(props: { groups: Group[]; now: string | null; most: number; plan?: boolean }): JSX.Element {
  if (!props.groups.length) return <Empty>Nothing was decided since this page was opened. Silence means that all is well.</Empty>;
  return (
    <ol class="feed">
      {props.groups.slice(0, props.most).map((group) => {
        const names = namesIn([group.data, ...group.machines.map((machine) => ({ machine }))]);
        return (
          <li key={`${group.shard}/${group.data.cycle}/${group.data.kind}/${group.data.machine}`} class={group.withheld ? 'withheld' : ''}>
            <time>{props.plan ? 'next' : clock(group.data.time, props.now)}</time>
            <span class={`kind ${group.data.kind}`}>{group.data.kind}</span>
            <span class="what">
              <span><Linked text={group.said} names={names} /></span>
              <span class="why"><Linked text={group.why} names={names} /></span>
            </span>
            {!props.plan && <a class="ask" href={href(['decision', String(group.data.cycle), group.data.machine])} aria-label={`Why: ${group.said}`}>why</a>}
          </li>
        );
      })}
    </ol>
  );
}

function Tile(props: { label: string; value: string; sub: string; tone?: string; children?: JSX.Element; to: string }): JSX.Element {
  return (
    <a class={`tile ${props.tone ?? ''}`} href={props.to}>
      <span class="label">{props.label}</span>
      <span class="value">{props.value}</span>
      <span class="sub">{props.sub}</span>
      {props.children}
    </a>
  );
}

export function Fleet(): JSX.Element {
  const { state, feed, columns } = useLive();
  const summary = state?.summary;
  if (!summary) return <p class="loading">Waiting for the first word of a shard…</p>;
  const now = summary.as_of?.now ?? null;
  const bound = summary.lanes.reduce((sum, lane) => sum + lane.machines, 0);
  const withheld = summary.withheld.reduce((sum, count) => sum + count.actions, 0);
  const time = columns?.time ?? [];
  const since = time[0] ? clock(new Date(time[0] * 1000).toISOString(), now) : 'now';
  const spark = (values: number[], color: string, label: string, bars = false) =>
    time.length > 1 ? (
      <Chart small title={label} time={time} height={38} format={String} lines={[{ label, values, color, fill: true, bars }]} />
    ) : (
      <span class="nochart" />
    );
  return (
    <>
      <Head title="Fleet" cmd="bigfleet top" />
      <div class="tiles">
        <Tile to={href(['cost'])} label="Spend" value={hourly(summary.usd_per_hour)} sub={`${usd(summary.idle_usd_per_hour)} of it idle`}>
          {spark(columns?.usd ?? [], '--accent', 'spend an hour')}
        </Tile>
        <Tile to={href(['needs'], { unmet: '1' })} label="Unmet needs" tone={summary.unmet ? 'bad' : 'good'} value={int(summary.unmet)} sub={`of ${int(summary.needs)}; ${int(summary.short - summary.unmet)} waiting for machines`}>
          {spark(columns?.unmet ?? [], '--bad', 'unmet needs')}
        </Tile>
        <Tile to={href(['machines'], { state: 'configured' })} label="Bound machines" value={int(bound)} sub={`${int(summary.moves)} moves under way`}>
          {spark(columns?.bound ?? [], '--good', 'bound machines')}
        </Tile>
        <Tile to={href(['timeline'])} label="Actions" value={int(columns?.actions.reduce((sum, n) => sum + n, 0) ?? 0)} tone={withheld ? 'warn' : ''} sub={`since ${since}; ${withheld ? `${int(withheld)} withheld by rails` : 'nothing withheld'}`}>
          {spark(columns?.actions ?? [], '--kind', 'actions', true)}
        </Tile>
      </div>
      <div class="two">
        <div class="stack">
          <Card title="Supply" aside={<span class="legend"><i class="b-bound" />bound <i class="b-moving" />moving <i class="b-idle" />idle <i class="b-failed" />failed <i class="b-quota" />quota</span>}>
            <Supply cells={summary.supply} />
          </Card>
          <Card title="Utilisation: asked for against provided">
            <Use lines={summary.use ?? []} />
          </Card>
          <Card title="Clusters">
            <Lanes lanes={summary.lanes} summary={summary} />
          </Card>
          {summary.worst.length > 0 && (
            <Card title="Short, the most important first" aside={<a href={href(['needs'], { unmet: '1' })}>all</a>}>
              <table>
                <thead>
                  <tr><th scope="col">Need</th><th scope="col">cluster</th><th scope="col" class="num">priority</th><th scope="col">because</th><th scope="col" class="num">for</th></tr>
                </thead>
                <tbody>
                  {summary.worst.slice(0, 6).map((one) => (
                    <tr>
                      <th scope="row"><a href={href(['need', one.need?.id ?? ''])}>{one.need?.group || one.need?.id}</a></th>
                      <td>{one.need?.cluster}</td>
                      <td class="num">{int(one.priority)}</td>
                      <td class={one.reason === 'in_flight' ? 'warn' : 'bad'}>{(one.reason ?? '').replaceAll('_', ' ')}</td>
                      <td class="num">{ago(one.since, now)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Card>
          )}
        </div>
        <Card title="Decisions, as they fall" aside={<a href={href(['timeline'])}>look back</a>} class="feedcard">
          <Feed groups={feed} now={now} most={40} />
        </Card>
      </div>
    </>
  );
}
