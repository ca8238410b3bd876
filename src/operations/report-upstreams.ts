import type { UpstreamState } from '../domain/upstreams/circuit.ts';
import type { UpstreamHealth } from '../domain/upstreams/upstream-health.ts';

/** An upstream as operators see it. */
export interface UpstreamReport {
  readonly state: 'unknown' | 'ok' | 'failing' | 'being tried again' | 'asked for a pause';
  /** Why its latest contact failed, and what to do; left out if it did not fail. */
  readonly cause?: string;
}

/** The states of a circuit whose upstream failed, for operators. */
const failingStates: Readonly<Record<UpstreamState, UpstreamReport['state']>> = {
  closed: 'failing',
  open: 'failing',
  half_open: 'being tried again',
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

/** The report on one upstream. */
export function reportUpstream(name: string, health: UpstreamHealth): UpstreamReport {
  const contact = health.contact(name);
  const cause = contact?.cause ?? null;
  const why = cause === null ? {} : { cause };
  if (health.coolingMs(name) > 0) return { state: 'asked for a pause', ...why };
  const circuit = health.state(name);
  if (cause !== null || circuit !== 'closed') return { state: failingStates[circuit], ...why };
  return { state: contact === null ? 'unknown' : 'ok' };
}
