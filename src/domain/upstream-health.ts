import type { Clock } from './ports.ts';

/** How an attempt at an upstream went; the closed set behind records and metrics. */
export type AttemptResult =
  | 'ok'
  | 'refused'
  | 'rate_limited'
  | 'overloaded'
  | 'auth'
  | 'unserved'
  | 'stale'
  | 'unreachable'
  | 'timeout'
  | 'error'
  | 'invalid'
  | 'truncated'
  | 'interrupted';

/** Whether an upstream is used: as usual, not for now, or for one request that finds out. */
export type UpstreamState = 'closed' | 'open' | 'half_open';

/** So many failures in a row open an upstream's circuit. */
const maxConsecutiveFailures = 5;

/** So does this share of failures among at least so many attempts of one window, in milliseconds. */
const maxFailureShare = 0.5;
const minAttempts = 20;
const windowMs = 30_000;

/** How long it stays open, in milliseconds. */
const openMs = 5_000;

/** How long one request is waited for that finds out, in milliseconds: an upstream that hangs would get more of them. */
const probePatienceMs = 60_000;

/**
 * How long an upstream is asked last that limits us without saying for how long, in milliseconds. Where it does say, it
 * is not asked at all.
 */
const defaultCoolDownMs = 5_000;

/** What the results say of the upstream: only failures count against it, and nothing is learnt from the rest. */
const verdicts: Readonly<Record<AttemptResult, 'success' | 'failure' | 'neutral'>> = {
  ok: 'success',
  /** It answered: the fault is the request's. */
  refused: 'success',
  rate_limited: 'neutral',
  overloaded: 'neutral',
  auth: 'failure',
  /** It has not got what was asked for, such as the model: that says nothing of what it has. */
  unserved: 'neutral',
  stale: 'neutral',
  unreachable: 'failure',
  timeout: 'failure',
  error: 'failure',
  invalid: 'failure',
  truncated: 'failure',
  interrupted: 'neutral',
};

/** How an upstream may be used now: as usual, when nobody better is left, or not at all. */
type Availability = 'available' | 'failing' | 'cooling';

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
  /** Notes that a probe is sent there: one that goes well makes up for probes that failed, but for no requests. */
  probed(upstream: string): WatchedAttempt;
}

/** Watches what the attempts themselves show; an upstream comes into being when it is first asked about. */
export function createUpstreamHealth(clock: Clock): UpstreamHealth {
  const byRequests = new Map<string, Circuit>();
  const byProbes = new Map<string, Circuit>();
  const circuitIn = (circuits: Map<string, Circuit>, upstream: string): Circuit => {
    const circuit = circuits.get(upstream) ?? new Circuit();
    circuits.set(upstream, circuit);
    return circuit;
  };
  const both = (upstream: string): readonly Circuit[] => [
    circuitIn(byRequests, upstream),
    circuitIn(byProbes, upstream),
  ];
  const watch = (circuit: Circuit): WatchedAttempt => {
    const startedMs = clock.monotonicMs();
    circuit.began(startedMs);
    return {
      opened: () => circuit.opened(startedMs),
      ended: (result, retryAfterMs) => circuit.ended(result, retryAfterMs, startedMs, clock.monotonicMs()),
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
    began: (upstream) => watch(circuitIn(byRequests, upstream)),
    probed: (upstream) => watch(circuitIn(byProbes, upstream)),
  };
}

/** Both from the worst to the best. */
const states: readonly UpstreamState[] = ['open', 'half_open', 'closed'];
const availabilities: readonly Availability[] = ['cooling', 'failing', 'available'];

/** Of some grades the one that stands first in the order from the worst to the best. */
function worst<Grade>(order: readonly Grade[], grades: readonly Grade[]): Grade {
  return order.find((grade) => grades.includes(grade)) as Grade;
}

/** One upstream's past, as far as it matters; times are on the monotonic clock. */
class Circuit {
  #consecutiveFailures = 0;
  #window = { startMs: 0, attempts: 0, failures: 0 };
  #openedMs: number | null = null;
  /** When the request was sent that finds out whether it is well again. */
  #probeStartMs: number | null = null;
  #coolUntilMs = 0;
  /** Until when it is asked last, because it limited us without saying for how long. */
  #lastUntilMs = 0;

  state(nowMs: number): UpstreamState {
    if (this.#openedMs === null) return 'closed';
    return nowMs - this.#openedMs < openMs ? 'open' : 'half_open';
  }

  availability(nowMs: number): Availability {
    const state = this.state(nowMs);
    const probing = this.#probeStartMs !== null && nowMs - this.#probeStartMs < probePatienceMs;
    if (this.coolingMs(nowMs) > 0) return 'cooling';
    const isLast = state === 'open' || (state === 'half_open' && probing) || nowMs < this.#lastUntilMs;
    return isLast ? 'failing' : 'available';
  }

  coolingMs(nowMs: number): number {
    return Math.max(0, this.#coolUntilMs - nowMs);
  }

  began(nowMs: number): void {
    if (this.state(nowMs) === 'half_open') this.#probeStartMs = nowMs;
  }

  opened(startedMs: number): void {
    if (this.#probeStartMs === startedMs) this.#probeStartMs = null;
    if (this.#openedMs !== null && startedMs >= this.#openedMs) this.#close();
  }

  ended(result: AttemptResult, retryAfterMs: number | null, startedMs: number, nowMs: number): void {
    if (this.#probeStartMs === startedMs) this.#probeStartMs = null;
    if (result === 'rate_limited' || result === 'overloaded') {
      this.#lastUntilMs = nowMs + defaultCoolDownMs;
      this.#coolUntilMs = Math.max(this.#coolUntilMs, nowMs + (retryAfterMs ?? 0));
    }
    const verdict = verdicts[result];
    // What was sent before the circuit opened is no news about how the upstream is since.
    if (verdict === 'neutral' || (this.#openedMs !== null && startedMs < this.#openedMs)) return;
    if (nowMs - this.#window.startMs >= windowMs) this.#window = { startMs: nowMs, attempts: 0, failures: 0 };
    this.#window.attempts++;
    if (verdict === 'success') this.#succeeded();
    else this.#failed(nowMs);
  }

  #succeeded(): void {
    this.#consecutiveFailures = 0;
    if (this.#openedMs !== null) this.#close();
  }

  #close(): void {
    this.#openedMs = null;
    this.#consecutiveFailures = 0;
    this.#window = { startMs: 0, attempts: 0, failures: 0 };
  }

  #failed(nowMs: number): void {
    const { attempts, failures } = this.#window;
    this.#window.failures = failures + 1;
    this.#consecutiveFailures++;
    const share = attempts >= minAttempts && (failures + 1) / attempts >= maxFailureShare;
    if (this.#openedMs !== null || share || this.#consecutiveFailures >= maxConsecutiveFailures)
      this.#openedMs = nowMs;
  }
}
