import type { AttemptResult } from './attempt-result.ts';
import { Circuit } from './circuit.ts';
import type { Availability, UpstreamState } from './circuit.ts';
import type { Clock } from './ports/clock.ts';

/** One attempt as its upstream's health sees it. */
interface WatchedAttempt {
  /** Its answer has begun: whoever was left alone is used again. Whether it is a success is told by its end. */
  opened(): void;
  /** Notes how it went, once. */
  ended(result: AttemptResult, retryAfterMs: number | null): void;
}

/** What the attempts so far say of every upstream. */
export interface UpstreamHealth {
  availability(upstream: string): Availability;
  state(upstream: string): UpstreamState;
  /** How long an upstream that said so wants to be left alone still, in milliseconds. */
  coolingMs(upstream: string): number;
  /** Notes that a request is sent there. */
  began(upstream: string): WatchedAttempt;
  /** Forgets what requests and probes showed of an upstream: it is another one now, or gone. */
  forget(upstream: string): void;
  /** Forgets what probes showed: nobody probes it any more, or in another way. */
  forgetProbes(upstream: string): void;
  /** Notes that a probe is sent there: one that goes well makes up for probes that failed, but for no requests. */
  probed(upstream: string): WatchedAttempt;
}

/** Watches what the attempts themselves show; an upstream comes into being when it is first asked about. */
export function createUpstreamHealth(
  clock: Clock,
  onChange: (upstream: string, state: UpstreamState) => void = () => {},
): UpstreamHealth {
  const byRequests = new Map<string, Circuit>();
  const byProbes = new Map<string, Circuit>();
  const both = (upstream: string): readonly Circuit[] => [
    circuitIn(byRequests, upstream),
    circuitIn(byProbes, upstream),
  ];
  /** Does something to a circuit, and tells if that opened or closed it. */
  const noticing = (upstream: string, circuit: Circuit, work: () => void): void => {
    const before = circuit.isOpen;
    work();
    if (circuit.isOpen !== before) onChange(upstream, circuit.isOpen ? 'open' : 'closed');
  };
  const watch = (upstream: string, circuit: Circuit): WatchedAttempt => {
    const startedMs = clock.monotonicMs();
    circuit.began(startedMs);
    return {
      opened: () => noticing(upstream, circuit, () => circuit.opened(startedMs)),
      ended: (result, retryAfterMs) =>
        noticing(upstream, circuit, () =>
          circuit.ended(result, retryAfterMs, startedMs, clock.monotonicMs()),
        ),
    };
  };
  return {
    state: (upstream) =>
      worst(
        states,
        both(upstream).map((circuit) => circuit.state(clock.monotonicMs())),
      ),
    availability: (upstream) =>
      worst(
        availabilities,
        both(upstream).map((circuit) => circuit.availability(clock.monotonicMs())),
      ),
    coolingMs: (upstream) => circuitIn(byRequests, upstream).coolingMs(clock.monotonicMs()),
    began: (upstream) => watch(upstream, circuitIn(byRequests, upstream)),
    probed: (upstream) => watch(upstream, circuitIn(byProbes, upstream)),
    forget(upstream) {
      byRequests.delete(upstream);
      byProbes.delete(upstream);
    },
    forgetProbes: (upstream) => void byProbes.delete(upstream),
  };
}

/** Both from the worst to the best. */
const states: readonly UpstreamState[] = ['open', 'half_open', 'closed'];
const availabilities: readonly Availability[] = ['cooling', 'failing', 'available'];

/** Of some grades the one that stands first in the order from the worst to the best. */
function worst<Grade>(order: readonly Grade[], grades: readonly Grade[]): Grade {
  return order.find((grade) => grades.includes(grade)) as Grade;
}

function circuitIn(circuits: Map<string, Circuit>, upstream: string): Circuit {
  const circuit = circuits.get(upstream) ?? new Circuit();
  circuits.set(upstream, circuit);
  return circuit;
}
