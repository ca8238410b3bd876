import { Circuit } from './circuit.ts';
import type { Availability, CircuitView, UpstreamState } from './circuit.ts';
import type { HealthSign } from './failure.ts';
import type { Clock } from '../ports/clock.ts';

/** Reports one attempt to its upstream's health. */
interface HealthReport {
  /** Notes that the answer has begun, which closes an open circuit. Success or failure is only known at the end. */
  opened(): void;
  /**
   * Notes the result, once; `retryAfterMs` is the pause that the upstream asked for, `cause` the operator's sentence about
   * a failure.
   */
  ended(sign: HealthSign, retryAfterMs: number | null, cause?: string | null): void;
}

/** The latest contact with an upstream. */
interface UpstreamContact {
  /** Why it failed, in the operator's words; `null` after an answer. */
  readonly cause: string | null;
  /** When the latest contact was that brought an answer, and that failed: by the wall clock; `null` without one. */
  readonly okAtMs: number | null;
  readonly failedAtMs: number | null;
}

/** The circuits of an upstream: that of its requests, and that of its probes. */
interface CircuitViews {
  readonly requests: CircuitView;
  readonly probes: CircuitView;
}

/** The health of every upstream, by the attempts so far. */
export interface UpstreamHealth {
  availability(upstream: string): Availability;
  state(upstream: string): UpstreamState;
  /** What its circuits know; times are on the monotonic clock. */
  circuits(upstream: string): CircuitViews;
  /** The latest contact by a request, a probe or a fetched list of models; `null` before the first one. */
  contact(upstream: string): UpstreamContact | null;
  /** Notes a contact outside of requests and probes; `cause` is `null` after an answer. */
  contacted(upstream: string, cause: string | null): void;
  /** The rest of the pause that an upstream asked for, in milliseconds. */
  coolingMs(upstream: string): number;
  /** Notes that a request is sent to an upstream. */
  began(upstream: string): HealthReport;
  /** Forgets all requests and probes of an upstream, because its config changed or it was removed. */
  forget(upstream: string): void;
  /** Forgets the probes of an upstream, because it is no longer probed, or in another way. */
  forgetProbes(upstream: string): void;
  /** Notes that a probe is sent to an upstream. Its success makes up for failed probes, but not for failed requests. */
  probed(upstream: string): HealthReport;
}

/**
 * Judges upstreams by their attempts alone; a new upstream begins with a closed circuit. `onChange` is called when one
 * opens, with the cause of its latest failure, and when it closes.
 */
export function createUpstreamHealth(
  clock: Clock,
  onChange: (upstream: string, state: UpstreamState, cause: string | null) => void = () => {},
): UpstreamHealth {
  const byRequests = new Map<string, Circuit>();
  const byProbes = new Map<string, Circuit>();
  const contacts = new Map<string, UpstreamContact>();
  const note = (upstream: string, cause: string | null): void => {
    const { okAtMs = null, failedAtMs = null } = contacts.get(upstream) ?? {};
    const nowMs = clock.now();
    contacts.set(
      upstream,
      cause === null ? { cause, okAtMs: nowMs, failedAtMs } : { cause, okAtMs, failedAtMs: nowMs },
    );
  };
  const both = (upstream: string): readonly Circuit[] => [
    circuitIn(byRequests, upstream),
    circuitIn(byProbes, upstream),
  ];
  /** Changes a circuit, and calls `onChange` if that opened or closed it. */
  const noticing = (upstream: string, circuit: Circuit, work: () => void): void => {
    const before = circuit.isOpen;
    work();
    if (circuit.isOpen !== before)
      onChange(upstream, circuit.isOpen ? 'open' : 'closed', contacts.get(upstream)?.cause ?? null);
  };
  const watch = (upstream: string, circuit: Circuit): HealthReport => {
    const startedMs = clock.monotonicMs();
    circuit.began(startedMs);
    return {
      opened: () => noticing(upstream, circuit, () => circuit.opened(startedMs)),
      ended(sign, retryAfterMs, cause = null) {
        if (sign === 'success') note(upstream, null);
        if (sign === 'failure' || sign === 'busy') note(upstream, cause ?? 'the latest request failed');
        noticing(upstream, circuit, () => circuit.ended(sign, retryAfterMs, startedMs, clock.monotonicMs()));
      },
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
    contact: (upstream) => contacts.get(upstream) ?? null,
    circuits(upstream) {
      const nowMs = clock.monotonicMs();
      return {
        requests: circuitIn(byRequests, upstream).view(nowMs),
        probes: circuitIn(byProbes, upstream).view(nowMs),
      };
    },
    contacted: note,
    coolingMs: (upstream) => circuitIn(byRequests, upstream).coolingMs(clock.monotonicMs()),
    began: (upstream) => watch(upstream, circuitIn(byRequests, upstream)),
    probed: (upstream) => watch(upstream, circuitIn(byProbes, upstream)),
    forget(upstream) {
      byRequests.delete(upstream);
      byProbes.delete(upstream);
      contacts.delete(upstream);
    },
    forgetProbes: (upstream) => void byProbes.delete(upstream),
  };
}

/** Both from the worst to the best. */
const states: readonly UpstreamState[] = ['open', 'half_open', 'closed'];
const availabilities: readonly Availability[] = ['cooling', 'failing', 'available'];

/** The worst of some grades; `order` runs from the worst to the best. */
function worst<Grade>(order: readonly Grade[], grades: readonly Grade[]): Grade {
  return order.find((grade) => grades.includes(grade)) as Grade;
}

function circuitIn(circuits: Map<string, Circuit>, upstream: string): Circuit {
  const circuit = circuits.get(upstream) ?? new Circuit();
  circuits.set(upstream, circuit);
  return circuit;
}
