import type { UpstreamOutages } from '../../domain/ports/outbox.ts';
import type { UpstreamHealth } from '../../domain/upstreams/upstream-health.ts';
import { repeatTask } from '../repeat.ts';
import type { TaskPorts } from '../repeat.ts';

/** How often the circuits are compared with what was reported, in milliseconds. */
const lookMs = 5_000;

/** What is watched, of the config in force. */
interface WatchedUpstreams {
  readonly names: readonly string[];
  /** How long a circuit must be open, or closed again, to count, in milliseconds. */
  readonly holdMs: number;
  /** Whether any webhook wants to know. */
  readonly isWanted: boolean;
}

interface OutagePorts extends TaskPorts {
  readonly outages: UpstreamOutages;
  readonly health: Pick<UpstreamHealth, 'state' | 'contact'>;
  readonly watched: () => WatchedUpstreams;
}

/**
 * Reports upstreams that are down, and up again. A circuit that opens and closes by turns is neither: each must last. An
 * upstream that has not answered since the start is not up: its circuit is closed because nothing is known of it.
 */
export function watchOutages({ outages, health, watched, ...ports }: OutagePorts) {
  const { clock } = ports;
  const since = new Map<string, { readonly isOpen: boolean; readonly ms: number }>();

  const sinceOf = (upstream: string) => {
    const isOpen = health.state(upstream) !== 'closed';
    const known = since.get(upstream);
    if (known?.isOpen === isOpen) return known;
    const begun = { isOpen, ms: clock.monotonicMs() };
    since.set(upstream, begun);
    return begun;
  };
  const isUp = (upstream: string): boolean => health.contact(upstream)?.cause === null;

  const failure = 'outages of upstreams can not be reported';
  const { stop } = repeatTask(ports, { firstMs: lookMs, delayMs: lookMs, failure }, async (signal) => {
    const { names, holdMs, isWanted } = watched();
    for (const known of since.keys()) if (!names.includes(known)) since.delete(known);
    const lasting = names.map((upstream) => ({ upstream, ...sinceOf(upstream) }));
    if (!isWanted) return;
    const reported = new Map((await outages.list()).map((outage) => [outage.upstream, outage.isSeenHere]));
    for (const { upstream, isOpen, ms } of lasting) {
      if (signal.aborted) return;
      if (clock.monotonicMs() - ms < holdMs) continue;
      if (isOpen && reported.get(upstream) !== true) await outages.sawDown(upstream);
      if (!isOpen && reported.has(upstream) && isUp(upstream)) await outages.sawUp(upstream);
    }
    for (const upstream of reported.keys()) if (!names.includes(upstream)) await outages.forget(upstream);
  });
  return {
    /** Notes that a circuit of an upstream opened or closed. */
    changed: (upstream: string) => void sinceOf(upstream),
    stop,
  };
}
