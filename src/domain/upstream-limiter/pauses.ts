import type { CallInFlight } from './load.ts';
import type { Extent } from './configured-limits.ts';
import type { Model } from './lanes.ts';

/** The longest pause that is kept, in milliseconds: after that, one request may have been the cause for all others. */
const maxPauseMs = 60_000;

/** How long the others wait for the answer to the request that tries then, in milliseconds: after that, another one tries. */
const maxTrialMs = 10_000;

/** How long an upstream, or a model there, is not used, as its answers asked for. Times are monotonic, in milliseconds. */
class Pause {
  #untilMs = 0;
  /** Whether a longer pause was asked for than is kept, so that one request tries when it is over. */
  #isTrialDue = false;
  /** When the one that tries was sent; `null` before that. */
  #triedMs: number | null = null;

  leftMs(nowMs: number): number {
    return Math.max(0, this.#untilMs - nowMs);
  }

  /** Whether nothing is left of it, nor of the wait for the one that tries. */
  isOver(nowMs: number): boolean {
    return nowMs >= this.#untilMs && !this.#isTrialDue;
  }

  /** When requests may start. For `certain` without the wait for the one that tries, as it may be answered any moment. */
  overAtMs(extent: Extent): number {
    const trialEndMs = this.#triedMs === null || extent === 'certain' ? 0 : this.#triedMs + maxTrialMs;
    return Math.max(this.#untilMs, trialEndMs);
  }

  /** An answer asked for a pause. */
  extend(durationMs: number, nowMs: number): void {
    this.#untilMs = Math.max(this.#untilMs, nowMs + Math.min(durationMs, maxPauseMs));
    this.#isTrialDue ||= durationMs > maxPauseMs;
  }

  /** A request starts. */
  began(nowMs: number): void {
    if (this.#isTrialDue) this.#triedMs = nowMs;
  }

  /** A request was answered, or failed: it decides on the others if it was sent after the pause. */
  ended(call: CallInFlight): void {
    if (!this.#isTrial(call)) return;
    this.#isTrialDue = false;
    this.#triedMs = null;
  }

  /** A request that has started is not sent: if it was to try, another one does. */
  releasedUnused(call: CallInFlight): void {
    if (this.#isTrial(call)) this.#triedMs = null;
  }

  #isTrial({ startedMs }: CallInFlight): boolean {
    return this.#isTrialDue && startedMs >= this.#untilMs;
  }
}

/** How many models of one upstream have a pause at a time: beyond that, the one that ends first is forgotten. */
const maxPauses = 1_000;

/** The pauses that the answers of one upstream asked for: for all of its models, and for each alone. */
export class Pauses {
  readonly #ofAll = new Pause();
  readonly #ofModels = new Map<Model, Pause>();

  /** How long the upstream is not used for a model, in milliseconds. */
  leftMs(model: Model, nowMs: number): number {
    return Math.max(this.ofAllMs(nowMs), this.#ofModels.get(model)?.leftMs(nowMs) ?? 0);
  }

  /** How long it is used for no model, in milliseconds. */
  ofAllMs(nowMs: number): number {
    return this.#ofAll.leftMs(nowMs);
  }

  /** The models that pause alone, and for how long, in milliseconds. */
  ofModels(nowMs: number): readonly (readonly [model: Model, leftMs: number])[] {
    return [...this.#ofModels].flatMap(([model, pause]) => {
      const leftMs = pause.leftMs(nowMs);
      return leftMs > 0 ? [[model, leftMs] as const] : [];
    });
  }

  /** When no pause of all models holds a request any more, on the monotonic clock. */
  ofAllOverAtMs(extent: Extent): number {
    return this.#ofAll.overAtMs(extent);
  }

  /** When a model's own pause holds its requests no more, on the monotonic clock. */
  overAtMs(model: Model, extent: Extent): number {
    return this.#ofModels.get(model)?.overAtMs(extent) ?? 0;
  }

  began(model: Model, nowMs: number): void {
    for (const pause of this.#of(model)) pause.began(nowMs);
  }

  /**
   * An answer has begun that asked for some pauses, or needs them: a 503 for all models, and any other for its own, as
   * providers limit each alone.
   */
  answered(
    model: Model,
    call: CallInFlight,
    { status, pausesMs }: { readonly status: number; readonly pausesMs: readonly number[] },
    nowMs: number,
  ): void {
    this.ended(model, call, nowMs);
    const pauseMs = Math.max(...pausesMs);
    if (pauseMs > 0) (status === 503 ? this.#ofAll : this.#keep(model, nowMs)).extend(pauseMs, nowMs);
  }

  /** A request is over, or was answered. */
  ended(model: Model, call: CallInFlight, nowMs: number): void {
    for (const pause of this.#of(model)) pause.ended(call);
    if (this.#ofModels.get(model)?.isOver(nowMs) === true) this.#ofModels.delete(model);
  }

  releasedUnused(model: Model, call: CallInFlight): void {
    for (const pause of this.#of(model)) pause.releasedUnused(call);
  }

  #keep(model: Model, nowMs: number): Pause {
    const known = this.#ofModels.get(model);
    if (known !== undefined) return known;
    if (this.#ofModels.size >= maxPauses) this.#forgetOne(nowMs);
    const pause = new Pause();
    this.#ofModels.set(model, pause);
    return pause;
  }

  #forgetOne(nowMs: number): void {
    const lefts = [...this.#ofModels].map(([model, pause]) => ({ model, leftMs: pause.leftMs(nowMs) }));
    const first = lefts.reduce((one, other) => (other.leftMs < one.leftMs ? other : one));
    this.#ofModels.delete(first.model);
  }

  #of(model: Model): readonly Pause[] {
    const own = this.#ofModels.get(model);
    return own === undefined ? [this.#ofAll] : [this.#ofAll, own];
  }
}
