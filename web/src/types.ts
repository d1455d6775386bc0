// What the server sends: messages of bigfleet.view.v1 as `--json` has them, only as far as the page reads them.

export interface AsOf {
  shard_id: string;
  cycle: number;
  cycle_time: string | null;
  now: string | null;
  from_record: boolean;
  simulated: boolean;
}
export interface NeedRef {
  id: string;
  long_id: string;
  cluster: string;
  group: string;
}
export interface SupplyCell {
  capacity_type: string | null;
  state: string | null;
  machines: number;
  usd_per_hour: number;
}
export interface ResourceUse {
  resource: string;
  asked: number;
  provided: number;
  idle: number;
}
export interface Lane {
  cluster: string;
  machines: number;
  usd_per_hour: number;
  needs: number;
  unmet: number;
  short: number;
  connected: boolean;
  paused: boolean;
  held: boolean;
  reported: boolean;
  use?: ResourceUse[];
  /** auto, approve or observe: the strictest of all kinds of action. */
  mode?: string | null;
  mode_mixed?: boolean;
}
export interface Shortfall {
  need: NeedRef | null;
  priority: number;
  since: string | null;
  reason: string | null;
  deficit: Record<string, string>;
}
export interface FateCount {
  kind: string | null;
  fate: string | null;
  actions: number;
}
export interface ProviderBrief {
  name: string;
  machines: number;
  heard: string | null;
  stale: boolean;
}
export interface Summary {
  as_of: AsOf | null;
  supply: SupplyCell[];
  lanes: Lane[];
  usd_per_hour: number;
  idle_usd_per_hour: number;
  needs: number;
  unmet: number;
  short: number;
  worst: Shortfall[];
  pauses: number;
  dry_run: boolean;
  mode?: string | null;
  proposals?: number;
  withheld: FateCount[];
  moves: number;
  providers: ProviderBrief[];
  use?: ResourceUse[];
}
export interface Decision {
  cycle: number;
  time: string | null;
  kind: string | null;
  machine: string;
  cluster: string;
  need: NeedRef | null;
  fate: string | null;
  usd_per_hour: number;
  [more: string]: unknown;
}
export interface Group {
  shard: string;
  data: Decision;
  said: string;
  why: string;
  withheld: boolean;
  count: number;
  usd_per_hour: number;
  machines: string[];
}
export interface Link {
  shard: string;
  connected: boolean;
  trouble: string;
  silent_secs: number | null;
  cycle: number;
  /** Of how many cycles, the last, half of them less, the worst; milliseconds. */
  cycle_millis: [number, number, number, number] | null;
}
export interface Columns {
  time: number[];
  usd: number[];
  idle_usd: number[];
  unmet: number[];
  short: number[];
  bound: number[];
  actions: number[];
  withheld: number[];
  /** Hundredths of what bound machines provide. */
  cpu: (number | null)[];
  memory: (number | null)[];
}
export interface State {
  links: Link[];
  summary: Summary | null;
  feed: Group[];
  skipped: number;
  history?: { shard: string; columns: Columns }[];
}
export interface Hello {
  program: string;
  caller: { name: string; may_act: boolean };
  signed_in: boolean;
  shards: { name: string; version?: Record<string, unknown>; trouble?: string }[];
  now: State;
}
export interface Need {
  key: NeedRef | null;
  spec: { priority: number; group: string } | null;
  satisfied: boolean;
  reason: string | null;
  credited: number;
  acquired: number;
  in_flight: number;
  victims: number;
  short_since: string | null;
  usd_per_hour: number;
  parked: boolean;
}
export interface NeedRow {
  shard: string;
  data: Need;
  wants: string;
  missing: string;
  reason: string;
}
export interface Machine {
  id: string;
  state: string | null;
  provider: string;
  cluster: string;
  instance_type: string;
  zone: string;
  capacity_type: string | null;
  usd_per_hour: number;
  bound_for: NeedRef | null;
  trouble: string;
  state_since: string | null;
}
export type Tone = 'plain' | 'head' | 'good' | 'warn' | 'bad' | 'dim';
export type Part =
  | { part: 'heading'; text: string; tone: Tone }
  | { part: 'said'; label: string; text: string; tone: Tone }
  | { part: 'columns'; label: string; rows: string[][]; right: number[] };
export interface Explained {
  data: Record<string, unknown>;
  story: Part[];
}
