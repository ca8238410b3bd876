import type { Availability, UpstreamState } from './circuit.ts';
import { KnownUpstream, worstAvailability, worstState } from './known-upstream.ts';
import type { KnownModel } from './known-upstream.ts';
import type { Clock } from '../ports/clock.ts';
import { noteProbe, noteRequest } from './sent-request.ts';
import type { CircuitChange, HealthReport, ReportPorts, Target } from './sent-request.ts';

/**
 * The health of every upstream and of each of its models, judged by their attempts alone; circuits are closed at first.
 * `onChange` is called when one opens, with the cause of its latest failure, and when it closes.
 */
export class UpstreamHealth {
  readonly #all = new Map<string, KnownUpstream>();
  readonly #nothingKnown = new KnownUpstream();
  readonly #clock: Clock;
  readonly #ports: ReportPorts;

  constructor(clock: Clock, onChange: (change: CircuitChange) => void = () => {}) {
    this.#clock = clock;
    this.#ports = { clock, onChange };
  }

  /** How a target is for requests of a key; of any key with `null`. */
  availability(target: Target, key: string | null): Availability {
    const nowMs = this.#clock.monotonicMs();
    const whole = this.#find(target.upstream).availability(nowMs, key);
    const ofModel = this.#modelOf(target);
    return ofModel === undefined ? whole : worstAvailability(whole, ofModel.circuit.availability(nowMs, key));
  }

  /** The rest of the pause that was asked for at a target, in milliseconds. */
  coolingMs(target: Target): number {
    return this.#modelOf(target)?.circuit.coolingMs(this.#clock.monotonicMs()) ?? 0;
  }

  /** The state of a target, for all keys; a model that was asked to pause counts as open. */
  targetState(target: Target): UpstreamState {
    const nowMs = this.#clock.monotonicMs();
    const whole = this.#find(target.upstream).state(nowMs);
    const ofModel = this.#modelOf(target);
    if (ofModel === undefined) return whole;
    return ofModel.circuit.coolingMs(nowMs) > 0 ? 'open' : worstState(whole, ofModel.circuit.state(nowMs));
  }

  /** Notes that a request for a key is sent; the key is `null` where none is to be told from others. */
  began(target: Target, key: string | null): HealthReport {
    return noteRequest(this.#keep(target.upstream), target, key, this.#ports);
  }

  /** Notes that a probe is sent to an upstream. Its success makes up for failed probes, but not for failed requests. */
  probed(upstream: string): Pick<HealthReport, 'ended'> {
    return noteProbe(this.#keep(upstream), upstream, this.#ports);
  }

  /** The state of an upstream: its own, or that of the best of its models that were asked for. */
  state(upstream: string): UpstreamState {
    return this.#find(upstream).stateOfAll(this.#clock.monotonicMs());
  }

  /** The same of how it is used. */
  upstreamAvailability(upstream: string): Availability {
    return this.#find(upstream).availabilityOfAll(this.#clock.monotonicMs());
  }

  /** The rest of the shortest pause of its models that were asked for, if all of them pause, in milliseconds. */
  pauseMs(upstream: string): number {
    return this.#find(upstream).pauseMs(this.#clock.monotonicMs());
  }

  /** What its circuits know, of all of its models and of each that was asked for; times are on the monotonic clock. */
  circuits(upstream: string) {
    const nowMs = this.#clock.monotonicMs();
    const { requests, probes, models } = this.#find(upstream);
    return {
      requests: requests.view(nowMs),
      probes: probes.view(nowMs),
      models: new Map([...models].map(([name, model]) => [name, model.view(nowMs)])),
    };
  }

  /** The latest contact by a request, a probe or a fetched list of models; `null` before the first one. */
  contact(upstream: string): Pick<KnownUpstream, 'cause' | 'okAtMs' | 'failedAtMs'> | null {
    const { cause, okAtMs, failedAtMs } = this.#find(upstream);
    return okAtMs === null && failedAtMs === null ? null : { cause, okAtMs, failedAtMs };
  }

  /** Notes a contact outside of requests and probes; `cause` is `null` after an answer. */
  contacted(upstream: string, cause: string | null): void {
    this.#keep(upstream).note(cause, null, this.#clock.now());
  }

  /** Forgets all requests and probes of an upstream, because its config changed or it was removed. */
  forget(upstream: string): void {
    this.#all.delete(upstream);
  }

  /**
   * Forgets all models of an upstream but these, by their names there: what is asked for no more could never show that it works
   * again.
   */
  keepModels(upstream: string, names: ReadonlySet<string>): void {
    this.#all.get(upstream)?.keepModels(names);
  }

  /** Forgets the probes of an upstream, because it is no longer probed, or in another way. */
  forgetProbes(upstream: string): void {
    this.#all.get(upstream)?.forgetProbes();
  }

  #find(upstream: string): KnownUpstream {
    return this.#all.get(upstream) ?? this.#nothingKnown;
  }

  #modelOf({ upstream, model }: Target): KnownModel | undefined {
    return model === null ? undefined : this.#find(upstream).models.get(model);
  }

  #keep(name: string): KnownUpstream {
    const upstream = this.#all.get(name) ?? new KnownUpstream();
    this.#all.set(name, upstream);
    return upstream;
  }
}
