import { Circuit } from './circuit.ts';
import type { Availability, UpstreamState } from './circuit.ts';
import { ModelFailures } from './failure-keys.ts';

/** How many models of one upstream are known at a time; for another one, that is forgotten which was asked for longest ago. */
const maxModels = 1_000;

/** Both from the worst to the best. */
const states: readonly UpstreamState[] = ['open', 'half_open', 'closed'];
const availabilities: readonly Availability[] = ['cooling', 'failing', 'available'];

/** What is known of a model at an upstream. */
export class KnownModel {
  readonly circuit = new Circuit();
  /** Why its latest request failed, in the operator's words; `null` after an answer, and before the first one. */
  cause: string | null = null;
  hasEnded = false;
  /** Which request to its upstream was its latest one, by their number. */
  lastRequest = 0;

  view(nowMs: number) {
    const { circuit, cause } = this;
    return { circuit: circuit.view(nowMs), availability: circuit.availability(nowMs, null), cause };
  }
}

/** What is known of a model at an upstream; times are on the monotonic clock. */
export type ModelHealth = ReturnType<KnownModel['view']>;

/** What is known of one upstream, and of each of its models that were asked for. */
export class KnownUpstream {
  /** The circuits of what concerns all models: by requests, and by probes. */
  readonly requests = new Circuit();
  probes = new Circuit();
  readonly models = new Map<string, KnownModel>();
  readonly modelFailures = new ModelFailures();
  /** When the latest contact was that brought an answer, and that failed: by the wall clock; `null` without one. */
  okAtMs: number | null = null;
  failedAtMs: number | null = null;
  #cause: string | null = null;
  #requests = 0;

  /**
   * Why it can't be used, in the operator's words: what the latest contact showed, or that of each of its models; `null` if it
   * can.
   */
  get cause(): string | null {
    if (this.#cause !== null) return this.#cause;
    let cause: string | null = null;
    for (const model of this.models.values()) {
      if (model.hasEnded && model.cause === null) return null;
      cause = model.cause ?? cause;
    }
    return cause;
  }

  /** The model that a request is sent for. */
  model(name: string): KnownModel {
    let model = this.models.get(name);
    if (model === undefined) {
      if (this.models.size >= maxModels) this.#forgetLeastRecent();
      model = new KnownModel();
      this.models.set(name, model);
    }
    model.lastRequest = ++this.#requests;
    return model;
  }

  #forgetLeastRecent(): void {
    let least: readonly [string, number] = ['', Infinity];
    for (const [name, { lastRequest }] of this.models)
      if (lastRequest < least[1]) least = [name, lastRequest];
    this.models.delete(least[0]);
  }

  /** Forgets all models but these. */
  keepModels(names: ReadonlySet<string>): void {
    for (const name of this.models.keys()) if (!names.has(name)) this.models.delete(name);
  }

  /** Notes an answer, or why there was none; `model` is `null` if that concerns all of them. */
  note(cause: string | null, model: KnownModel | null, nowMs: number): void {
    if (cause === null) this.okAtMs = nowMs;
    else this.failedAtMs = nowMs;
    if (cause === null || model === null) this.#cause = cause;
    if (model !== null) {
      model.cause = cause;
      model.hasEnded = true;
    } else if (cause === null) for (const each of this.models.values()) each.cause = null;
  }

  forgetProbes(): void {
    this.probes = new Circuit();
  }

  /** The state of what concerns all models. */
  state(nowMs: number): UpstreamState {
    return worstState(this.requests.state(nowMs), this.probes.state(nowMs));
  }

  /** That of the best of its models, if it is worse than its own. */
  stateOfAll(nowMs: number): UpstreamState {
    const ofModels = [...this.models.values()].map(({ circuit }) => circuit.state(nowMs));
    return worstState(this.state(nowMs), best(states, ofModels));
  }

  availability(nowMs: number, key: string | null): Availability {
    const { requests, probes } = this;
    return worstAvailability(requests.availability(nowMs, key), probes.availability(nowMs, key));
  }

  availabilityOfAll(nowMs: number): Availability {
    const ofModels = [...this.models.values()].map(({ circuit }) => circuit.availability(nowMs, null));
    return worstAvailability(this.availability(nowMs, null), best(availabilities, ofModels));
  }

  /** The rest of the shortest pause, if each of its models that were asked for has one, in milliseconds. */
  pauseMs(nowMs: number): number {
    const pauses = [...this.models.values()].map(({ circuit }) => circuit.coolingMs(nowMs));
    return pauses.length === 0 ? 0 : Math.min(...pauses);
  }
}

export function worstState(one: UpstreamState, other: UpstreamState): UpstreamState {
  return states.indexOf(one) < states.indexOf(other) ? one : other;
}

export function worstAvailability(one: Availability, other: Availability): Availability {
  return availabilities.indexOf(one) < availabilities.indexOf(other) ? one : other;
}

/** The best of some grades; without any, the best there is. */
function best<Grade>(order: readonly Grade[], grades: readonly Grade[]): Grade {
  const found = grades.length === 0 ? order : order.filter((grade) => grades.includes(grade));
  return found.at(-1) as Grade;
}
