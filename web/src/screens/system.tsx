// System: whether everybody is heard, what the rails do now, and the way to hold still.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { get, post } from '../api';
import { ago, change, clock, hourly, int, percent, price, span, word } from '../format';
import { useLive } from '../live';
import type { FateCount, Group, ProviderBrief, SupplyCell } from '../types';
import { Ask, Card, Cli, Empty, Head, Pill, useAsk } from '../ui';
import { Feed } from './fleet';

interface Provider {
  brief: ProviderBrief | null;
  incremental: boolean;
  last_full_list: string | null;
  list_error: string;
  held: boolean;
  held_missing: number;
  failures: number;
  supports_delete: boolean;
  machines: SupplyCell[];
  list_every_secs: number;
  stale_after_secs: number;
}
interface Session {
  number: number;
  cluster: string;
  protocol: string;
  opened: string | null;
  reported: string | null;
}
interface PauseRow {
  data: { number: number; cluster: string; kind: string | null };
  said: string;
}
interface Rails {
  data: {
    reclaim_fraction: number;
    reclaim_window_secs: number;
    max_actions_per_cycle: number;
    dry_run: boolean;
    mode?: string | null;
    max_moves: number;
    moves: number;
    caps: { cluster: string; configured: number; cap: number; used: number }[];
    held_rollups: { cluster: string; seen: number; of: number }[];
    silent_clusters: string[];
    withheld: FateCount[];
    demand_drop: number;
    supply_drop: number;
    confirmations: number;
  };
  pauses: PauseRow[];
}

interface Plan {
  groups: Group[];
  totals: FateCount[];
  usd_per_hour_before: number;
  usd_per_hour_after: number;
  unmet_before: number;
  unmet_after: number;
}

/** What would be done if the next cycle ran now: the answer before anything is turned on. */
function NextCycle(props: { shard: string | undefined; now: string | null }): JSX.Element {
  const plan = useAsk<Plan>((signal) => get('plan', { shard: props.shard, limit: 200 }, signal), `plan ${props.shard}`, 4000);
  return (
    <Card title="The next cycle, if it ran now" aside={<Cli cmd="bigfleet plan" />}>
      <Ask of={plan} what="plan">
        {(found) => (
          <>
            <p class="note">
              {hourly(found.usd_per_hour_before)} now, {hourly(found.usd_per_hour_after)} after ({found.usd_per_hour_before === found.usd_per_hour_after ? 'unchanged' : `${change(found.usd_per_hour_after - found.usd_per_hour_before)}/h`}); unmet needs {int(found.unmet_before)} now, {int(found.unmet_after)} after.
            </p>
            {found.groups.length ? <Feed groups={found.groups} now={props.now} most={20} plan /> : <Empty>{found.unmet_after ? 'It would do nothing: nothing there is could help what is short.' : 'It would do nothing: what is there fits what is asked for.'}</Empty>}
          </>
        )}
      </Ask>
    </Card>
  );
}

interface Took {
  samples: number;
  p10_secs: number;
  p50_secs: number;
  p90_secs: number;
}
interface TruthRow {
  provider: string;
  instance_type: string;
  capacity_type: string | null;
  machines: number;
  min_usd_per_hour: number;
  max_usd_per_hour: number;
  max_probability: number;
  bound_machine_hours: number;
  promised_interruptions: number;
  observed_interruptions: number;
  create: Took | null;
  configure: Took | null;
}

/** Short times: 0.4 ms, 12 ms, 1.3 s. */
const millis = (n: number): string => (n < 10 ? `${n.toFixed(1)} ms` : n < 1000 ? `${int(n)} ms` : `${(n / 1000).toFixed(1)} s`);

function took(time: Took | null): string {
  if (!time?.samples) return '–';
  const [from, to] = [span(time.p10_secs), span(time.p90_secs)];
  return `${from === to ? from : `${from}–${to}`} (${int(time.samples)})`;
}

/** Rows shown before somebody asks for all. */
const FEW = 12;

/** What providers promised beside what was seen: the sorts that broke their promise most first. */
function Truth(): JSX.Element {
  const [all, setAll] = useState(false);
  const asked = useAsk<{ data: { rows: TruthRow[] } }>((signal) => get('truth', {}, signal), 'truth', 15_000);
  return (
    <Card title="Promised against observed" aside={<Cli cmd="bigfleet get truth" />}>
      <Ask of={asked} what="observations">
        {({ data: { rows } }) => rows.length ? (
          <table>
            <thead><tr><th scope="col">Sort</th><th scope="col" class="num">$/h</th><th scope="col" class="num">lost/promised</th><th scope="col" class="num wide">create</th><th scope="col" class="num wide">configure</th></tr></thead>
            <tbody>
              {[...rows].sort((a, b) => b.observed_interruptions - b.promised_interruptions - (a.observed_interruptions - a.promised_interruptions)).slice(0, all ? 200 : FEW).map((row) => (
                <tr>
                  <th scope="row">{row.instance_type} {word(row.capacity_type)}</th>
                  <td class="num">{row.min_usd_per_hour === row.max_usd_per_hour ? price(row.min_usd_per_hour) : `${price(row.min_usd_per_hour)}–${price(row.max_usd_per_hour)}`}</td>
                  <td class={row.observed_interruptions > 1 + 3 * row.promised_interruptions ? 'num bad' : 'num'}>{int(row.observed_interruptions)} / {row.promised_interruptions.toFixed(1)}</td>
                  <td class="num wide">{took(row.create)}</td>
                  <td class="num wide">{took(row.configure)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        ) : <Empty>Nothing was observed yet.</Empty>}
      </Ask>
      {!all && (asked.data?.data.rows.length ?? 0) > FEW && <p><button class="small" onClick={() => setAll(true)}>Show all {int(asked.data!.data.rows.length)}</button></p>}
      <p class="dim small-text">Times: nine of ten cases lie between; in brackets how many were seen.</p>
    </Card>
  );
}

function PauseForm(props: { clusters: string[]; shards: string[]; done: () => void }): JSX.Element {
  const [shard, setShard] = useState('');
  const [cluster, setCluster] = useState('');
  const [kind, setKind] = useState('');
  const [minutes, setMinutes] = useState('30');
  const [reason, setReason] = useState('');
  const [said, setSaid] = useState<{ text: string; bad: boolean } | null>(null);
  const send = async (event: Event) => {
    event.preventDefault();
    try {
      const answer = await post<{ said: string }>('pause', { cluster, kind, reason, for_secs: Math.round(Number(minutes) * 60) }, { shard });
      setSaid({ text: `Paused: ${answer.said}`, bad: false });
      setReason('');
      props.done();
    } catch (error) {
      setSaid({ text: (error as Error).message, bad: true });
    }
  };
  const cmd = `bigfleet pause${cluster ? ` --cluster ${cluster}` : ''}${kind ? ` --kind ${kind}` : ''} ${Number(minutes) > 0 ? `--for ${minutes}m` : '--until-resumed'} --reason ${JSON.stringify(reason || '…')}`;
  return (
    <form class="pause" onSubmit={(event) => void send(event)}>
      <div class="fields">
        {props.shards.length > 1 && <label>Shard <select value={shard} onChange={(event) => setShard(event.currentTarget.value)}><option value="">all</option>{props.shards.map((one) => <option value={one}>{one}</option>)}</select></label>}
        <label>Cluster <select value={cluster} onChange={(event) => setCluster(event.currentTarget.value)}><option value="">all</option>{props.clusters.map((one) => <option value={one}>{one}</option>)}</select></label>
        <label>Actions <select value={kind} onChange={(event) => setKind(event.currentTarget.value)}><option value="">all</option>{['bootstrap', 'provision', 'preempt', 'reclaim', 'delete'].map((one) => <option value={one}>{one}</option>)}</select></label>
        <label>Minutes <input type="number" min="0" max="100000" value={minutes} onInput={(event) => setMinutes(event.currentTarget.value)} title="0: until resumed" /></label>
        <label class="grow">Reason <input value={reason} required maxLength={500} placeholder="it is written down" onInput={(event) => setReason(event.currentTarget.value)} /></label>
        <button type="submit" class="act" disabled={!reason.trim()}>Pause</button>
      </div>
      <Cli cmd={cmd} />
      {said && <p class={said.bad ? 'note bad' : 'note good'} role="status">{said.text}</p>}
    </form>
  );
}

/** Whether another version may take over: it decides the record again, before it decides anything. */
function Upgrade(props: { versions: Record<string, unknown>[] }): JSX.Element {
  const recorded = props.versions.filter((one) => one.recording === true);
  return (
    <Card title="Before an upgrade, or back" aside={<Cli cmd="bigfleet replay DATA --binary NEW" />}>
      <p class="note">Another program decides the recorded cycles again and lists every decision that would come out differently. Nothing is executed, and the exit code says whether all are the same.</p>
      <dl class="facts">
        {props.versions.map((one) => (
          <div>
            <dt>{String(one.shard_id)}</dt>
            <dd>runs {String(one.server_version)}; {one.recording === true ? `there is a record from cycle ${int(Number(one.oldest_cycle) || 1)} on to replay` : <span class="warn">keeps no record: give it a data folder first</span>}</dd>
          </div>
        ))}
        <div><dt>then</dt><dd>{recorded.length ? 'replay each record; 0 differing cycles: it is safe. Otherwise read what differs before anything is replaced.' : 'nothing can be replayed.'}</dd></div>
        <div><dt>meanwhile</dt><dd>clusters keep their machines while a shard restarts; nothing is decided until it has heard its providers and clusters again.</dd></div>
      </dl>
    </Card>
  );
}

export function System(): JSX.Element {
  const { state, hello, link, since } = useLive();
  const now = state?.summary?.as_of?.now ?? null;
  const several = (state?.links.length ?? 1) > 1;
  const [shard, setShard] = useState<string | undefined>(undefined);
  const chosen = several ? (shard ?? state?.links[0]?.shard) : undefined;
  const rails = useAsk<Rails>((signal) => get('rails', { shard: chosen }, signal), `rails ${chosen}`, 2000);
  const providers = useAsk<{ rows: { shard: string; data: Provider }[] }>((signal) => get('providers', {}, signal), 'providers', 3000);
  const sessions = useAsk<{ rows: { shard: string; data: Session }[] }>((signal) => get('sessions', {}, signal), 'sessions', 3000);
  const [trouble, setTrouble] = useState('');
  const resume = async (number: number) => {
    try {
      await post('resume', { number }, { shard: chosen });
      setTrouble('');
      rails.again();
    } catch (error) {
      setTrouble((error as Error).message);
    }
  };
  return (
    <>
      <Head title="System" cmd="bigfleet doctor" />
      <div class="two even">
        <div class="stack">
          <Card title="Hold still" aside={several ? <select aria-label="Shard" value={chosen} onChange={(event) => setShard(event.currentTarget.value)}>{state?.links.map((one) => <option value={one.shard}>{one.shard}</option>)}</select> : undefined}>
            <Ask of={rails} what="pauses">
              {({ pauses }) => (
                <>
                  {pauses.length === 0 && <p class="note">Nothing is paused.</p>}
                  <ul class="pauses">
                    {pauses.map((one) => (
                      <li>
                        <span>{one.said}</span>
                        {hello?.caller.may_act && <button onClick={() => void resume(one.data.number)}>Resume</button>}
                      </li>
                    ))}
                  </ul>
                </>
              )}
            </Ask>
            {trouble && <p class="note bad" role="alert">{trouble}</p>}
            {hello?.caller.may_act ? (
              <PauseForm shards={(state?.links ?? []).map((one) => one.shard)} clusters={(state?.summary?.lanes ?? []).map((lane) => lane.cluster)} done={rails.again} />
            ) : (
              <p class="note">You may look and not act: pausing needs the role admin.</p>
            )}
          </Card>
          <NextCycle shard={chosen} now={now} />
          <Card title="Rails, and what they do now" aside={<Cli cmd="bigfleet get rails" />}>
            <Ask of={rails} what="rails">
              {({ data }) => (
                <>
                  <dl class="facts">
                    <div><dt>mode</dt><dd>{data.dry_run ? <Pill tone="info">dry run: nothing is executed</Pill> : data.mode === 'observe' ? <Pill tone="info">observe: nothing is executed</Pill> : data.mode === 'approve' ? <Pill tone="info">approve: what is approved is done</Pill> : <Pill tone="good">auto: what is decided is done</Pill>}</dd></div>
                    <div><dt>moves under way</dt><dd>{int(data.moves)} of at most {int(data.max_moves)}</dd></div>
                    <div><dt>reclaim cap</dt><dd>{percent(data.reclaim_fraction)} of a cluster's machines in {span(data.reclaim_window_secs)}</dd></div>
                    <div><dt>actions a cycle</dt><dd>{data.max_actions_per_cycle ? `at most ${int(data.max_actions_per_cycle)}` : 'no bound'}</dd></div>
                    <div><dt>held back</dt><dd>a report that asks for {percent(data.demand_drop)} less, or a list that lost {percent(data.supply_drop)}, until seen {int(data.confirmations)} times</dd></div>
                    <div><dt>not heard yet</dt><dd>{data.silent_clusters.length ? data.silent_clusters.join(', ') : 'every cluster has reported'}</dd></div>
                  </dl>
                  <h3>Withheld by the last cycle</h3>
                  {data.withheld.length ? (
                    <table><thead><tr><th scope="col">Action</th><th scope="col">because</th><th scope="col" class="num">how many</th></tr></thead><tbody>
                      {data.withheld.map((one) => <tr><th scope="row">{word(one.kind)}</th><td class="warn">{(one.fate ?? '').replaceAll('_', ' ')}</td><td class="num">{int(one.actions)}</td></tr>)}
                    </tbody></table>
                  ) : <Empty>Nothing: all that was decided was begun.</Empty>}
                  {data.caps.length > 0 && (
                    <>
                      <h3>Reclaim caps in use</h3>
                      <table><thead><tr><th scope="col">Cluster</th><th scope="col" class="num">used</th><th scope="col" class="num">cap</th><th scope="col" class="num">machines</th></tr></thead><tbody>
                        {data.caps.map((cap) => <tr><th scope="row">{cap.cluster}</th><td class={cap.used >= cap.cap ? 'num warn' : 'num'}>{int(cap.used)}</td><td class="num">{int(cap.cap)}</td><td class="num">{int(cap.configured)}</td></tr>)}
                      </tbody></table>
                    </>
                  )}
                </>
              )}
            </Ask>
          </Card>
          <Card title="Sessions" aside={<Cli cmd="bigfleet get sessions" />}>
            <Ask of={sessions} what="sessions">
              {({ rows }) => rows.length ? (
                <table><thead><tr><th scope="col">Cluster</th><th scope="col">protocol</th><th scope="col" class="num">open for</th><th scope="col" class="num">last report</th></tr></thead><tbody>
                  {rows.map(({ data }) => <tr><th scope="row">{data.cluster}</th><td>{data.protocol}</td><td class="num">{ago(data.opened, now)}</td><td class="num">{ago(data.reported, now)}</td></tr>)}
                </tbody></table>
              ) : <Empty>No cluster is connected.</Empty>}
            </Ask>
          </Card>
          <Upgrade versions={(hello?.shards ?? []).flatMap((one) => (one.version ? [one.version] : []))} />
        </div>
        <div class="stack">
          <Card title="Shards">
            <table>
              <thead><tr><th scope="col">Shard</th><th scope="col">link</th><th scope="col" class="num">cycle</th><th scope="col" class="num">took</th><th scope="col" class="num wide">worst</th><th scope="col" class="num wide">epoch</th><th scope="col" class="wide">version</th></tr></thead>
              <tbody>
                {(state?.links ?? []).map((one) => {
                  const version = hello?.shards.find((shard) => shard.name === one.shard)?.version;
                  return (
                    <tr>
                      <th scope="row">{one.shard}</th>
                      <td>{link !== 'live' ? <Pill tone="bad">{link} for {span((Date.now() - since) / 1000)}</Pill> : one.connected ? <Pill tone="good">heard</Pill> : <Pill tone="bad" title={one.trouble}>{one.trouble}</Pill>}</td>
                      <td class="num">{int(one.cycle)}</td>
                      <td class="num">{one.cycle_millis ? millis(one.cycle_millis[2]) : '–'}</td>
                      <td class="num wide">{one.cycle_millis ? millis(one.cycle_millis[3]) : '–'}</td>
                      <td class="num wide">{String(version?.epoch ?? '–')}</td>
                      <td class="wide">{String(version?.server_version ?? '–')}</td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
            <p class="dim small-text">A cycle took: half of the last {int(Math.max(0, ...(state?.links ?? []).map((one) => one.cycle_millis?.[0] ?? 0)))} less than that, and none longer than the worst.</p>
          </Card>
          <Card title="Providers, and whether they tell the truth" aside={<Cli cmd="bigfleet get providers" />}>
            <Ask of={providers} what="providers">
              {({ rows }) => rows.length ? (
                <div class="list">
                  {rows.map(({ data }) => (
                    <div class="item">
                      <h3>{data.brief?.name} {data.brief?.stale ? <Pill tone="bad">stale</Pill> : data.list_error ? <Pill tone="warn">failing</Pill> : <Pill tone="good">fresh</Pill>}</h3>
                      <dl class="facts">
                        <div><dt>machines</dt><dd>{int(data.brief?.machines ?? 0)}, {hourly(data.machines.reduce((sum, cell) => sum + cell.usd_per_hour, 0))}</dd></div>
                        <div><dt>prices and states are</dt><dd>{ago(data.brief?.heard ?? null, now)} old, said by the provider, dollars an hour</dd></div>
                        <div><dt>listed</dt><dd>every {span(data.list_every_secs)}, stale after {span(data.stale_after_secs)}; {data.incremental ? 'tells what changed' : 'tells everything every time'}</dd></div>
                        <div><dt>last full list</dt><dd>{clock(data.last_full_list, now)}</dd></div>
                        <div><dt>takes machines back</dt><dd>{data.supports_delete ? 'yes' : 'no'}</dd></div>
                        {data.held && <div><dt>held</dt><dd class="warn">a list that lost {int(data.held_missing)} machines waits to be confirmed</dd></div>}
                        {data.list_error && <div><dt>last failure</dt><dd class="bad">{data.list_error} ({int(data.failures)} in a row)</dd></div>}
                      </dl>
                    </div>
                  ))}
                </div>
              ) : <Empty>No provider.</Empty>}
            </Ask>
          </Card>
          <Truth />
        </div>
      </div>
    </>
  );
}
