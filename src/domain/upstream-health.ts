import { Circuit } from './circuit.ts';
import type { Availability, UpstreamState } from './circuit.ts';
import type { HealthSign } from './failure.ts';
import type { Clock } from './ports/clock.ts';

/** One attempt, as it counts for its upstream's health. */
export interface HealthReport {
  /** Its answer has begun, which closes an open circuit. Whether it is a success shows at its end. */
  opened(): void;
  /** Notes how it went, once; `retryAfterMs` is the pause that the upstream asked for. */
  ended(sign: HealthSign, retryAfterMs: number | null): void;
}

/** How every upstream does, by the attempts so far. */
export interface UpstreamHealth {
  availability(upstream: string): Availability;
  state(upstream: string): UpstreamState;
  /** How much is left of the pause that an upstream asked for, in milliseconds. */
  coolingMs(upstream: string): number;
  /** Notes that a request is sent there. */
  began(upstream: string): HealthReport;
  /** Forgets what requests and probes showed of an upstream: its config changed, or it is gone. */
  forget(upstream: string): void;
  /** Forgets what probes showed: the upstream is not probed any more, or in another way. */
  forgetProbes(upstream: string): void;
  /** Notes that a probe is sent there: its success makes up for failed probes, but not for failed requests. */
  probed(upstream: string): HealthReport;
}

/** Judges upstreams by the attempts themselves; an upstream begins with a clean record when it is first named. */
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
  /** Does something to a circuit, and calls back if that opened or closed it. */
  const noticing = (upstream: string, circuit: Circuit, work: () => void): void => {
    const before = circuit.isOpen;
    work();
    if (circuit.isOpen !== before) onChange(upstream, circuit.isOpen ? 'open' : 'closed');
  };
  const watch = (upstream: string, circuit: Circuit): HealthReport => {
    const startedMs = clock.monotonicMs();
    circuit.began(startedMs);
    return {
      opened: () => noticing(upstream, circuit, () => circuit.opened(startedMs)),
      ended: (sign, retryAfterMs) =>
        noticing(upstream, circuit, () => circuit.ended(sign, retryAfterMs, startedMs, clock.monotonicMs())),
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
