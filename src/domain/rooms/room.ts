import type { LimitUse } from '../ports/room-shares.ts';
import type { RoomRequest, RoomSettings, RoomTokens } from '../ports/rooms.ts';
import type { Extent } from './configured-limits.ts';
import { FairQueue } from './fair-queue.ts';
import type { IsHeld } from './lanes.ts';
import type { AnswerReport } from './learned-limits.ts';
import { LoadSum } from './load.ts';
import type { Ahead, Load } from './load.ts';
import { ModelLimits } from './model-limits.ts';
import type { Model, RoomPorts } from './model-limits.ts';
import { RoomLimits, isLimited } from './room-limits.ts';
import type { LimitedStay } from './room-limits.ts';
import { nextTurn } from './turn.ts';
import type { Turn } from './turn.ts';

/** The answers with which a `retry-after` counts: some upstreams send it with answers that are none of these, too. */
const pausingStatuses: ReadonlySet<number> = new Set([429, 503, 529]);

/** An answer that says nothing of the limits to which it is told. */
const silent: AnswerReport = { status: 0, retryAfterMs: null, report: null };

const noTokens: RoomTokens = { input: 0, output: 0 };

/** A member of a room's queue: what it asks for. */
export interface Waiting {
  readonly request: RoomRequest;
}

/** A request in progress: under the limits of its upstream, and under those of its model where that has any. */
export interface RoomStay {
  readonly keyId: string;
  readonly model: Model;
  /** What its key was charged in the fair order, and whether that was its tokens. */
  readonly cost: number;
  readonly isByTokens: boolean;
  readonly ofAll: LimitedStay;
  readonly ofModel: { readonly limits: RoomLimits; readonly stay: LimitedStay } | null;
}

/**
 * The room of one upstream: its limits, those of its models, who is in, and who waits. A request has its place under both at
 * once. All wait in one queue, in which those are passed over whose models pause or are used up to limits of their own. It
 * knows no timers and no promises: times are given to it, on the monotonic clock, in milliseconds.
 */
export class Room<Member extends Waiting> {
  readonly upstream: string;
  readonly queue = new FairQueue<Member>(({ request }) => request.tokens);
  /** What holds all requests, and what holds those for some models alone. */
  readonly ofAll: RoomLimits;
  readonly models: ModelLimits;
  settings: RoomSettings;
  /** A request that could not start at once and did not wait, until its need was told. */
  missed: { readonly model: Model; readonly tokens: RoomTokens } | null = null;
  /** What a cost in the fair order is: one for a request, or its tokens. */
  #costsTokens: boolean;

  constructor(upstream: string, settings: RoomSettings, ports: RoomPorts) {
    this.upstream = upstream;
    this.settings = settings;
    this.ofAll = new RoomLimits(upstream, settings, (limit) => ports.shareOf(upstream, limit));
    this.models = new ModelLimits(upstream, ports);
    this.models.configure(settings.models);
    this.#costsTokens = this.#countsTokens;
  }

  configure(settings: RoomSettings): void {
    this.settings = settings;
    this.ofAll.configure(settings);
    this.models.configure(settings.models);
  }

  /** The upstream is another one from this config on: forgets what answers taught. What is in progress goes on. */
  forget(config: number): void {
    this.ofAll.forget(config);
    this.models.forget(config);
  }

  /** Whether requests for a model need a place. */
  limits(model: Model): boolean {
    return isLimited(this.settings) || this.models.of(model) !== undefined;
  }

  /** What the service of a request costs its key. */
  costOf(tokens: RoomTokens): number {
    const costsTokens = this.#countsTokens;
    if (costsTokens !== this.#costsTokens) {
      this.#costsTokens = costsTokens;
      // A cost in tokens among costs of one each would keep its key waiting behind thousands of others.
      this.queue.reprice(({ request }) => this.#price(request.tokens));
    }
    return this.#price(tokens);
  }

  /** In how many milliseconds a request for a model may start: 0 at once, `Infinity` if another one has to end first. */
  startsInMs(model: Model, tokens: RoomTokens, extent: Extent, nowMs: number): number {
    const ofModelMs = this.models.startsInMs(model, tokens, extent, nowMs);
    return Math.max(ofModelMs, this.#ofAllInMs(tokens, extent, nowMs));
  }

  /** Whether a request may start without waiting: there is room, and none waits that has to start before it. */
  isFree(model: Model, tokens: RoomTokens, nowMs: number): boolean {
    if (this.startsInMs(model, tokens, 'share', nowMs) > 0) return false;
    if (this.queue.size === 0) return true;
    const { ticket, held } = this.next(nowMs);
    return ticket === null && !held.has(model);
  }

  /** Who is next in the queue. */
  next(nowMs: number): Turn<Member> {
    return nextTurn(this.queue, {
      // Who waits for what has no limits any more waits for no pause either.
      ofModelMs: (model, tokens) =>
        this.limits(model) ? this.models.startsInMs(model, tokens, 'share', nowMs) : 0,
      ofAllMs: (tokens) => this.#ofAllInMs(tokens, 'share', nowMs),
    });
  }

  /** Whether no more requests may wait for any of some models. */
  isFull(models: readonly Model[]): boolean {
    if (this.queue.size >= this.settings.queue) return true;
    return models.every((model) => {
      const limits = this.models.of(model);
      return limits !== undefined && this.queue.lanes.waitingFor(model).requests >= limits.settings.queue;
    });
  }

  /** How long a request may wait for any of some models, in milliseconds. */
  queueWaitMs(models: readonly Model[]): number {
    const waits = models.map((model) => (this.models.of(model)?.settings ?? this.settings).queueWaitMs);
    return Math.max(...waits);
  }

  /** What this process uses of each configured limit, and what those that wait need beside that, or the one that was missed. */
  uses(nowMs: number): readonly LimitUse[] {
    const { missed } = this;
    this.missed = null;
    const needs = (load: Load, isMissing: boolean): Load => {
      const sum = new LoadSum(load);
      if (missed !== null && isMissing) sum.add(missed.tokens);
      return sum;
    };
    const { lanes, load } = this.queue;
    const ofModels = this.models.uses(
      (model) => needs(lanes.waitingFor(model), missed?.model === model),
      nowMs,
    );
    return [...this.ofAll.uses(needs(load, true), nowMs), ...ofModels];
  }

  /** A request starts, for which there must be room. One of the queue must have been taken out of it with `queue.serve`. */
  begin(
    request: Pick<RoomRequest, 'keyId' | 'tokens' | 'config'>,
    model: Model,
    cost: number,
    nowMs: number,
  ): RoomStay {
    this.models.pauses.began(model, nowMs);
    const limits = this.models.of(model);
    return {
      keyId: request.keyId,
      model,
      cost,
      isByTokens: this.#costsTokens,
      ofAll: this.ofAll.begin(request, nowMs),
      ofModel: limits === undefined ? null : { limits, stay: limits.begin(request, nowMs) },
    };
  }

  answered({ model, ofAll, ofModel }: RoomStay, head: AnswerReport, nowMs: number): void {
    const { status, retryAfterMs } = head;
    // Where a model learns its own limits, those of all models are not what its answers speak of.
    const isOfModel = ofModel?.limits.settings.learnLimits === true;
    const pausesMs = [
      this.ofAll.answered(ofAll, isOfModel ? silent : head, nowMs),
      ofModel?.limits.answered(ofModel.stay, head, nowMs) ?? 0,
      retryAfterMs !== null && pausingStatuses.has(status) ? retryAfterMs : 0,
    ];
    if (this.ofAll.teaches(ofAll)) this.models.pauses.answered(model, ofAll, { status, pausesMs }, nowMs);
  }

  leave(stay: RoomStay, usage: RoomTokens | null, nowMs: number): void {
    const { model, ofAll, ofModel, cost, isByTokens } = stay;
    if (!this.ofAll.leave(ofAll, usage, nowMs)) return;
    this.models.pauses.ended(model, ofAll, nowMs);
    ofModel?.limits.leave(ofModel.stay, usage, nowMs);
    this.#correct(stay, isByTokens && usage !== null ? usage.input + usage.output - cost : 0);
  }

  /** A request gives its place back without having been sent: others may start in its place. */
  withdraw(stay: RoomStay, nowMs: number): void {
    const { model, ofAll, ofModel, cost } = stay;
    if (!this.ofAll.withdraw(ofAll, nowMs)) return;
    this.models.pauses.withdrawn(model, ofAll);
    ofModel?.limits.withdraw(ofModel.stay, nowMs);
    this.#correct(stay, -cost);
  }

  /** Says of lanes whether their models hold all requests now: others pass those that wait in them. */
  heldAt(nowMs: number): IsHeld {
    return ({ models }) =>
      models.every((model) => this.models.startsInMs(model, noTokens, 'share', nowMs) > 0);
  }

  /** How long a request for any of some models has to wait behind others of the queue, in milliseconds: an estimate. */
  expectedMs(models: readonly Model[], { all, lane }: Ahead, tokens: RoomTokens, nowMs: number): number {
    const ofModels = models.map((model) => this.models.waitMs(model, lane, tokens, nowMs));
    return Math.ceil(Math.max(Math.min(...ofModels), this.ofAll.waitMs(all, tokens, nowMs)));
  }

  get #countsTokens(): boolean {
    return this.ofAll.countsTokens || [...this.models.all().values()].some((limits) => limits.countsTokens);
  }

  #price({ input, output }: RoomTokens): number {
    return this.#costsTokens ? Math.max(1, input + output) : 1;
  }

  /** In how many milliseconds nothing of all models holds a request; `Infinity` if another one has to end first. */
  #ofAllInMs(tokens: RoomTokens, extent: Extent, nowMs: number): number {
    const atMs = Math.max(
      this.models.pauses.ofAllOverAtMs(extent),
      this.ofAll.availableAtMs(tokens, extent, nowMs),
    );
    return Math.max(0, atMs - nowMs);
  }

  /** A request is gone: its key has to be charged something beside the cost. */
  #correct({ keyId, isByTokens }: RoomStay, correction: number): void {
    if (correction !== 0 && isByTokens === this.#costsTokens) this.queue.correct(keyId, correction);
    if (this.ofAll.inFlight === 0 && this.queue.size === 0) this.queue.forget();
  }
}
