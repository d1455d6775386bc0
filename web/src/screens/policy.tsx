// Policy: what clusters declare, added up to classes, with what each class has and costs.
import type { JSX } from 'preact';
import { get } from '../api';
import { cents, int } from '../format';
import { href, replace, usePlace } from '../router';
import { useLive } from '../live';
import { Ask, Card, Cli, Empty, Head, Pill, useAsk } from '../ui';

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
                          <td class="num strong">{cents(row.usd_per_hour)}</td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                ) : <Empty>Nobody asks for anything yet.</Empty>}
                {found.read < found.needs && <p class="note warn">Read {int(found.read)} of {int(found.needs)} needs.</p>}
              </Card>
            </>
          );
        }}
      </Ask>
      <Lints />
    </>
  );
}

interface Finding {
  code: string;
  severity: string | null;
  about: string;
  subject: string;
  found: string;
  fix: string;
  times: number;
}

/** Findings of a rule that are shown without being asked for. */
const SHOWN = 4;

/** What is to be done, once, with all it concerns. */
function byRule(findings: Finding[]): { code: string; severity: string | null; fix: string; findings: Finding[] }[] {
  const rules = new Map<string, { code: string; severity: string | null; fix: string; findings: Finding[] }>();
  for (const one of findings) {
    const key = `${one.code} ${one.fix}`;
    const rule = rules.get(key) ?? { code: one.code, severity: one.severity, fix: one.fix, findings: [] };
    rule.findings.push(one);
    rules.set(key, rule);
  }
  return [...rules.values()];
}

function Found(props: { one: Finding }): JSX.Element {
  const { one } = props;
  const subject = one.about === 'need' ? <a href={href(['need', one.subject.split('/').pop() ?? ''])}>{one.subject}</a> : one.subject;
  return <li><span>{one.about} {subject}{one.times > 1 ? ` and ${int(one.times - 1)} more` : ''}</span><span class="dim">{one.found}</span></li>;
}

function Lints(): JSX.Element {
  const asked = useAsk<{ data: { findings: Finding[]; needs: number; machines: number; providers: number } }>((signal) => get('lint', {}, signal), 'lint', 20_000);
  return (
    <Card title="Wrong or doubtful" aside={<Cli cmd="bigfleet lint" />}>
      <Ask of={asked} what="lints">
        {({ data }) => (
          <>
            {data.findings.length ? (
              <ol class="lints">
                {byRule(data.findings).map((rule) => (
                  <li>
                    <Pill tone={rule.severity === 'error' ? 'bad' : 'warn'}>{rule.code}</Pill>
                    <div>
                      <strong>{rule.fix}</strong>
                      <ul>
                        {rule.findings.slice(0, SHOWN).map((one) => <Found one={one} />)}
                      </ul>
                      {rule.findings.length > SHOWN && (
                        <details>
                          <summary>{int(rule.findings.length - SHOWN)} more</summary>
                          <ul>{rule.findings.slice(SHOWN, 200).map((one) => <Found one={one} />)}</ul>
                        </details>
                      )}
                    </div>
                  </li>
                ))}
              </ol>
            ) : <Empty>Nothing: every rule holds.</Empty>}
            <p class="dim small-text">Looked at {int(data.needs)} needs, {int(data.machines)} machines and {int(data.providers)} {data.providers === 1 ? 'provider' : 'providers'}.</p>
          </>
        )}
      </Ask>
    </Card>
  );
}
