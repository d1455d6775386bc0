// The frame around every screen: where you are, how the fleet stands, and whether what you see is live.
import { type JSX, render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import 'uplot/dist/uPlot.min.css';
import './style.css';
import { post } from './api';
import { clock, hourly, int, span } from './format';
import { begin, useLive } from './live';
import { go, href, usePlace } from './router';
import { Cost } from './screens/cost';
import { Fleet } from './screens/fleet';
import { MachineScreen, Machines } from './screens/machines';
import { NeedScreen, Needs } from './screens/needs';
import { Policy } from './screens/policy';
import { System } from './screens/system';
import { Timeline } from './screens/timeline';
import { ClusterScreen, DecisionScreen, PodScreen, Preemptions } from './screens/told';
import { WhatIf } from './screens/whatif';
import { Pill } from './ui';

void begin();

const SCREENS: [string, string, string][] = [
  ['fleet', 'Fleet', 'f'],
  ['needs', 'Needs', 'n'],
  ['machines', 'Machines', 'm'],
  ['timeline', 'Timeline', 't'],
  ['whatif', 'What if', 'w'],
  ['cost', 'Cost', 'c'],
  ['policy', 'Policy', 'p'],
  ['system', 'System', 's'],
];
/** Screens that belong to another one in the list. */
const PARENT: Record<string, string> = { need: 'needs', machine: 'machines', cluster: 'fleet', decision: 'timeline', preemptions: 'needs', pod: 'needs' };

function Screen(props: { path: string[] }): JSX.Element {
  const [name, first = '', second = ''] = props.path;
  switch (name) {
    case 'fleet': return <Fleet />;
    case 'needs': return <Needs />;
    case 'need': return <NeedScreen key={first} name={first} />;
    case 'machines': return <Machines />;
    case 'machine': return <MachineScreen key={first} name={first} />;
    case 'cluster': return <ClusterScreen key={first} name={first} />;
    case 'decision': return <DecisionScreen cycle={first} machine={second} />;
    case 'pod': return <PodScreen key={first} name={first} />;
    case 'preemptions': return <Preemptions />;
    case 'timeline': return <Timeline />;
    case 'whatif': return <WhatIf />;
    case 'cost': return <Cost />;
    case 'policy': return <Policy />;
    case 'system': return <System />;
    default: return <div class="empty"><strong>There is no such screen.</strong><p><a href={href(['fleet'])}>Back to the fleet</a></p></div>;
  }
}

function SignIn(): JSX.Element {
  const [token, set] = useState('');
  const [trouble, setTrouble] = useState('');
  const send = async (event: Event) => {
    event.preventDefault();
    try {
      await post('session', { token });
      setTrouble('');
      set('');
      await begin();
    } catch (error) {
      setTrouble((error as Error).message);
    }
  };
  return (
    <main class="signin">
      <form onSubmit={(event) => void send(event)}>
        <h1>BigFleet</h1>
        <p>This page is for people with a token. Ask whoever runs it for yours.</p>
        <label>Token <input type="password" autocomplete="current-password" value={token} onInput={(event) => set(event.currentTarget.value)} /></label>
        <button type="submit" class="act" disabled={!token}>Sign in</button>
        {trouble && <p class="note bad" role="alert">{trouble}</p>}
      </form>
    </main>
  );
}

function Banner(): JSX.Element | null {
  const { link, since, state } = useLive();
  const { query, path } = usePlace();
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  const quiet = state?.links.filter((one) => !one.connected) ?? [];
  const long = span((Date.now() - since) / 1000);
  if (link === 'gone') return <div class="banner bad" role="alert">Not connected for {long}: the server cannot be reached. {state ? 'What you see is the last that was heard.' : ''} Trying again…</div>;
  if (link === 'stale') return <div class="banner warn" role="alert">Nothing was heard for {long}: what you see may be old.</div>;
  if (link === 'live' && quiet.length) return <div class="banner bad" role="alert">{quiet.map((one) => `${one.shard} does not answer (${one.trouble})`).join('; ')}. Its figures are {quiet[0]?.silent_secs == null ? 'missing' : `${span(quiet[0].silent_secs)} old`}.</div>;
  const at = query.get('at');
  if (at) return <div class="banner info" role="status">You are looking at {/^t/.test(at) ? clock(new Date(Number(at.slice(1)) / 1e6).toISOString(), state?.summary?.as_of?.now ?? null) : `cycle ${at}`}, not at now. <a href={href(path)}>Live</a> (press L)</div>;
  return null;
}

function Top(): JSX.Element {
  const { state, link, hello } = useLive();
  const summary = state?.summary;
  const as_of = summary?.as_of;
  const withheld = summary?.withheld.reduce((sum, one) => sum + one.actions, 0) ?? 0;
  const mode = !summary ? null : summary.dry_run ? <Pill tone="info">DRY RUN</Pill> : summary.pauses ? <Pill tone="warn">{int(summary.pauses)} PAUSED</Pill> : summary.proposals ? <Pill tone="warn">{int(summary.proposals)} TO APPROVE</Pill> : !summary.mode || summary.mode === 'auto' ? <Pill tone="good">AUTO</Pill> : <Pill tone="info">{summary.mode.toUpperCase()}</Pill>;
  return (
    <header class="top">
      <a class="brand" href={href(['fleet'])}><img src="/icon.svg" alt="" width="22" height="22" />BigFleet</a>
      {as_of && <span class="fleet">{state!.links.length > 1 ? `${state!.links.length} shards` : as_of.shard_id}</span>}
      {as_of?.simulated && <Pill tone="info" title="The machines and clusters are not real; the shard is.">SIMULATED</Pill>}
      {mode && <a href={href(['system'])} class="quiet" title="Mode and pauses">{mode}</a>}
      {withheld > 0 && <a href={href(['system'])} class="quiet"><Pill tone="warn">{int(withheld)} withheld</Pill></a>}
      <span class="grow" />
      {summary && <span class="figure wide">{hourly(summary.usd_per_hour)}</span>}
      {summary && <a class={`figure quiet ${summary.unmet ? 'bad' : 'good'}`} href={href(['needs'], { unmet: '1' })}>{int(summary.unmet)} unmet</a>}
      <span class={`live ${link}`} title={hello ? `bigfleet ${hello.program}` : ''}><i />{as_of?.now ? clock(as_of.now, as_of.now) : '–'} <span class="wide">{link}</span></span>
      <Theme />
    </header>
  );
}

type Choice = 'auto' | 'light' | 'dark';
function Theme(): JSX.Element {
  const [choice, set] = useState<Choice>(() => (localStorage.getItem('theme') as Choice | null) ?? 'auto');
  useEffect(() => {
    if (choice === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice;
    localStorage.setItem('theme', choice);
    dispatchEvent(new Event('bigfleet-theme'));
  }, [choice]);
  const next: Record<Choice, Choice> = { auto: 'light', light: 'dark', dark: 'auto' };
  return <button class="small wide" onClick={() => set(next[choice])} aria-label={`Colours: ${choice}`} title={`Colours: ${choice === 'auto' ? 'as the system has them' : choice}`}>
    <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
      <circle cx="8" cy="8" r="6.5" fill={choice === 'dark' ? 'currentColor' : 'none'} stroke="currentColor" stroke-width="1.5" />
      {choice === 'auto' && <path d="M8 1.5a6.5 6.5 0 0 1 0 13z" fill="currentColor" />}
    </svg>
  </button>;
}

function App(): JSX.Element {
  const { link, state } = useLive();
  const { path } = usePlace();
  const current = PARENT[path[0] ?? ''] ?? path[0];
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
      const screen = SCREENS.find(([, , letter]) => letter === event.key);
      if (screen) go([screen[0]]);
      else if (event.key === 'l' || event.key === 'L') go(location.hash.replace(/^#\/?/, '').split('?')[0]!.split('/').map(decodeURIComponent));
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, []);
  useEffect(() => {
    document.title = `${path.slice(0, 2).join(' ')} · BigFleet`;
    scrollTo(0, 0);
  }, [path.join('/')]);
  if (link === 'sign-in') return <SignIn />;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById('main')?.focus(); }}>Skip to the content</a>
      <Top />
      <Banner />
      <div class="frame">
        <nav aria-label="Screens">
          {SCREENS.map(([name, title, letter]) => (
            <a href={href([name])} aria-current={current === name ? 'page' : undefined} title={`Press ${letter}`}>
              {title}
              {name === 'needs' && state?.summary && state.summary.unmet > 0 && <span class="badge">{int(state.summary.unmet)}</span>}
              <kbd aria-hidden="true">{letter}</kbd>
            </a>
          ))}
        </nav>
        <main id="main" tabIndex={-1}><Screen path={path} /></main>
      </div>
    </>
  );
}

render(<App />, document.getElementById('app')!);
