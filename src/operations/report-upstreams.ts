import type { UpstreamState } from '../domain/upstreams/circuit.ts';
import type { ModelHealth } from '../domain/upstreams/known-upstream.ts';
import type { UpstreamHealth } from '../domain/upstreams/upstream-health.ts';

/** How many models of an upstream are named with their states. */
const maxNamed = 20;

/** The states of an upstream, or of a model there, as operators see them. */
type ReportedState = 'unknown' | 'ok' | 'failing' | 'probing' | 'paused by the provider';

/** An upstream, or a model there, as operators see it. */
interface Report {
  readonly state: ReportedState;
  /** Why its latest contact failed, and what to do; left out if it did not fail. */
  readonly cause?: string;
}

/** An upstream as operators see it. */
export interface UpstreamReport extends Report {
  /** Of an upstream that was asked for several models, the first of those that are not ok, by the names there. */
  readonly models?: Readonly<Record<string, Report>>;
}

/** The states of a circuit whose upstream failed, for operators. */
const failingStates: Readonly<Record<UpstreamState, ReportedState>> = {
  closed: 'failing',
  open: 'failing',
  half_open: 'probing',
};

/**
 * The report on every upstream, by name. One that has not answered yet is `unknown`; one whose latest contact failed is
 * `failing`, even if its circuit is still closed.
 */
export function reportUpstreams(
  names: readonly string[],
  health: UpstreamHealth,
): Readonly<Record<string, UpstreamReport>> {
  return Object.fromEntries(names.map((name) => [name, reportUpstream(name, health)]));
}

/** The report on one upstream: it is as bad as the best of its models that were asked for, of which the bad ones are named. */
export function reportUpstream(name: string, health: UpstreamHealth): UpstreamReport {
  const contact = health.contact(name);
  const cause = contact?.cause ?? null;
  const details = { ...(cause === null ? {} : { cause }), ...namedModels(health.circuits(name).models) };
  if (health.pauseMs(name) > 0) return { state: 'paused by the provider', ...details };
  const circuit = health.state(name);
  if (cause !== null || circuit !== 'closed') return { state: failingStates[circuit], ...details };
  return { state: contact === null ? 'unknown' : 'ok', ...details };
}

function namedModels(models: ReadonlyMap<string, ModelHealth>): Pick<UpstreamReport, 'models'> {
  if (models.size < 2) return {};
  const named = [...models].flatMap(([name, model]) => {
    const state = stateOf(model);
    return state === 'ok' ? [] : [[name, { state, ...(model.cause === null ? {} : { cause: model.cause }) }]];
  });
  return named.length === 0 ? {} : { models: Object.fromEntries(named.slice(0, maxNamed)) };
}

function stateOf({ availability, circuit, cause }: ModelHealth): ReportedState {
  if (availability === 'cooling') return 'paused by the provider';
  return cause === null && circuit.state === 'closed' ? 'ok' : failingStates[circuit.state];
}
