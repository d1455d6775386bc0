// Screens that are one explanation: a decision, a cluster, preemptions.
import type { JSX } from 'preact';
import { get } from '../api';
import { useLive } from '../live';
import { href, usePlace } from '../router';
import type { Explained, Group } from '../types';
import { Ask, Card, Empty, Head, Story, useAsk } from '../ui';
import { Feed } from './fleet';

export function DecisionScreen(props: { cycle: string; machine: string }): JSX.Element {
  const asked = useAsk<Explained>((signal) => get('explain/decision', { cycle: props.cycle, machine: props.machine }, signal), `${props.cycle}/${props.machine}`);
  return (
    <>
      <Head title={`Decision ${props.cycle}`} cmd={`bigfleet explain decision ${props.cycle}/${props.machine}`} />
      <Ask of={asked} what="decision">
        {(found) => (
          <Card>
            <Story parts={found.story} data={found.data} />
            <p class="more">
              <a href={href(['machine', props.machine])}>the machine</a> · <a href={href(['machine', props.machine], { at: props.cycle })}>as it was then</a> ·{' '}
              <a href={href(['timeline'], { at: props.cycle })}>the whole fleet in cycle {props.cycle}</a>
            </p>
          </Card>
        )}
      </Ask>
    </>
  );
}

export function ClusterScreen(props: { name: string }): JSX.Element {
  const { state } = useLive();
  const now = state?.summary?.as_of?.now ?? null;
  const asked = useAsk<Explained>((signal) => get('explain/cluster', { name: props.name }, signal), props.name, 4000);
  const past = useAsk<{ groups: Group[] }>((signal) => get('decisions', { cluster: props.name, limit: 300 }, signal), props.name, 4000);
  return (
    <>
      <Head title={`Cluster ${props.name}`} cmd={`bigfleet explain cluster ${props.name}`} />
      <Ask of={asked} what="cluster">
        {(found) => (
          <div class="two">
            <Card>
              <Story parts={found.story} data={found.data} />
              <p class="more">
                <a href={href(['needs'], { cluster: props.name })}>its needs</a> · <a href={href(['machines'], { cluster: props.name })}>its machines</a> ·{' '}
                <a href={href(['policy'], { cluster: props.name })}>its priorities and penalties</a>
              </p>
            </Card>
            <Card title="What was decided for it">
              <Ask of={past} what="decisions">
                {({ groups }) => (groups.length ? <Feed groups={groups} now={now} most={60} /> : <Empty>Nothing lately.</Empty>)}
              </Ask>
            </Card>
          </div>
        )}
      </Ask>
    </>
  );
}

export function Preemptions(): JSX.Element {
  const { query } = usePlace();
  const [need, machine] = [query.get('need') ?? undefined, query.get('machine') ?? undefined];
  const asked = useAsk<Explained>((signal) => get('explain/preemption', { need, machine, limit: 50 }, signal), `${need}/${machine}`, 5000);
  return (
    <>
      <Head title="Preemptions" cmd={`bigfleet explain preemption${machine ? ` ${machine}` : ''}${need ? ` --need ${need}` : ''}`} />
      <Ask of={asked} what="preemptions">{(found) => <Card><Story parts={found.story} data={found.data} /></Card>}</Ask>
    </>
  );
}

export function PodScreen(props: { name: string }): JSX.Element {
  const asked = useAsk<Explained>((signal) => get('explain/pod', { name: props.name }, signal), props.name, 5000);
  return (
    <>
      <Head title={`Pod ${props.name}`} cmd={`bigfleet explain pod ${props.name}`} />
      <Ask of={asked} what="pod">{(found) => <Card><Story parts={found.story} data={found.data} /></Card>}</Ask>
    </>
  );
}
