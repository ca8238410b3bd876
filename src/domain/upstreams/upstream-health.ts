import type { Availability, CircuitView, UpstreamState } from './circuit.ts';
import { KnownUpstream, worstAvailability, worstState } from './known-upstream.ts';
import type { ModelHealth } from './known-upstream.ts';
import type { Clock } from '../ports/clock.ts';
import { SentProbe, SentRequest } from './sent-request.ts';
import type { CircuitChange, HealthReport, Target } from './sent-request.ts';

/** The latest contact with an upstream. */
interface UpstreamContact {
  /** Why it can't be used, in the operator's words; `null` after an answer. */
  readonly cause: string | null;
  /** When the latest contact was that brought an answer, and that failed: by the wall clock; `null` without one. */
  readonly okAtMs: number | null;
  readonly failedAtMs: number | null;
}

/** What is known of an upstream, and of each of its models that were asked for. */
interface UpstreamCircuits {
  /** The circuits of what concerns all of its models: of its requests, and of its probes. */
  readonly requests: CircuitView;
  readonly probes: CircuitView;
  readonly models: ReadonlyMap<string, ModelHealth>;
}

/** The health of every upstream and of each of its models, by the attempts so far. */
export interface UpstreamHealth {
  /** How a target is for requests of a key; of any key with `null`. */
  availability(target: Target, key: string | null): Availability;
  /** The rest of the pause that was asked for at a target, in milliseconds. */
  coolingMs(target: Target): number;
  /** The state of a target, for all keys; a model that was asked to pause counts as open. */
  targetState(target: Target): UpstreamState;
  /** Notes that a request for a key is sent; the key is `null` where none is to be told from others. */
  began(target: Target, key: string | null): HealthReport;
  /** Notes that a probe is sent to an upstream. Its success makes up for failed probes, but not for failed requests. */
  probed(upstream: string): Pick<HealthReport, 'ended'>;
  /** The state of an upstream: its own, or that of the best of its models that were asked for. */
  state(upstream: string): UpstreamState;
  /** The same of how it is used. */
  upstreamAvailability(upstream: string): Availability;
  /** The rest of the shortest pause of its models that were asked for, if all of them pause, in milliseconds. */
  pauseMs(upstream: string): number;
  /** What its circuits know; times are on the monotonic clock. */
  circuits(upstream: string): UpstreamCircuits;
  /** The latest contact by a request, a probe or a fetched list of models; `null` before the first one. */
  contact(upstream: string): UpstreamContact | null;
  /** Notes a contact outside of requests and probes; `cause` is `null` after an answer. */
  contacted(upstream: string, cause: string | null): void;
  /** Forgets all requests and probes of an upstream, because its config changed or it was removed. */
  forget(upstream: string): void;
  /**
   * Forgets all models of an upstream but these, by their names there: what is asked for no more could never show that it works
   * again.
   */
  keepModels(upstream: string, names: ReadonlySet<string>): void;
  /** Forgets the probes of an upstream, because it is no longer probed, or in another way. */
  forgetProbes(upstream: string): void;
}

/**
 * Judges upstreams and their models by their attempts alone; circuits are closed at first. `onChange` is called when one opens,
 * with the cause of its latest failure, and when it closes.
 */
export function createUpstreamHealth(
  clock: Clock,
  onChange: (change: CircuitChange) => void = () => {},
): UpstreamHealth {
  const all = new Map<string, KnownUpstream>();
  const nothingKnown = new KnownUpstream();
  const find = (name: string): KnownUpstream => all.get(name) ?? nothingKnown;
  const keep = (name: string): KnownUpstream => {
    const upstream = all.get(name) ?? new KnownUpstream();
    all.set(name, upstream);
    return upstream;
  };
  const ports = { clock, onChange };
  return {
    availability({ upstream, model }, key) {
      const nowMs = clock.monotonicMs();
      const known = find(upstream);
      const whole = known.availability(nowMs, key);
      const ofModel = model === null ? undefined : known.models.get(model);
      return ofModel === undefined
        ? whole
        : worstAvailability(whole, ofModel.circuit.availability(nowMs, key));
    },
    coolingMs({ upstream, model }) {
      const ofModel = model === null ? undefined : find(upstream).models.get(model);
      return ofModel?.circuit.coolingMs(clock.monotonicMs()) ?? 0;
    },
    targetState({ upstream, model }) {
      const nowMs = clock.monotonicMs();
      const known = find(upstream);
      const ofModel = model === null ? undefined : known.models.get(model);
      if (ofModel === undefined) return known.state(nowMs);
      return ofModel.circuit.coolingMs(nowMs) > 0
        ? 'open'
        : worstState(known.state(nowMs), ofModel.circuit.state(nowMs));
    },
    began: (target, key) => new SentRequest(keep(target.upstream), target, key, ports),
    probed: (upstream) => new SentProbe(keep(upstream), upstream, ports),
    state: (upstream) => find(upstream).stateOfAll(clock.monotonicMs()),
    upstreamAvailability: (upstream) => find(upstream).availabilityOfAll(clock.monotonicMs()),
    pauseMs: (upstream) => find(upstream).pauseMs(clock.monotonicMs()),
    circuits(upstream) {
      const nowMs = clock.monotonicMs();
      const { requests, probes, models } = find(upstream);
      return {
        requests: requests.view(nowMs),
        probes: probes.view(nowMs),
        models: new Map([...models].map(([name, model]) => [name, model.view(nowMs)])),
      };
    },
    contact(upstream) {
      const { cause, okAtMs, failedAtMs } = find(upstream);
      return okAtMs === null && failedAtMs === null ? null : { cause, okAtMs, failedAtMs };
    },
    contacted: (upstream, cause) => keep(upstream).note(cause, null, clock.now()),
    forget: (upstream) => void all.delete(upstream),
    keepModels: (upstream, names) => all.get(upstream)?.keepModels(names),
    forgetProbes: (upstream) => all.get(upstream)?.forgetProbes(),
  };
}
