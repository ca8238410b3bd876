import type { Extent } from './configured-limits.ts';
import type { Model } from './lanes.ts';
import { Pause } from './pause.ts';
import type { CallInFlight } from './call-in-flight.ts';

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
