import type { RequestTokens, PermitRequest, LimiterSettings } from '../ports/upstream-limiters.ts';
import type { Extent } from './configured-limits.ts';
import { CountedLimits, isLimited } from './counted-limits.ts';
import type { CountedCall } from './counted-limits.ts';
import { FairQueue } from './fair-queue.ts';
import { noLanes } from './lanes.ts';
import type { Model, HeldAndOpen, HeldLanes } from './lanes.ts';
import type { AnswerReport } from './learned-limits.ts';
import { noTokens } from './load.ts';
import type { Ahead } from './load.ts';
import { ModelLimits } from './model-limits.ts';
import type { LimiterPorts } from './model-limits.ts';
import { nextTurn } from './turn.ts';
import type { Turn } from './turn.ts';

/** For how many models of one upstream requests are remembered that could not start. */
const maxMissed = 100;

/** The latest request for each model that could not start at once and did not wait, until their needs are told. */
class Missed {
  #requests = new Map<Model, RequestTokens>();

  add(model: Model, tokens: RequestTokens): void {
    if (this.#requests.size < maxMissed) this.#requests.set(model, tokens);
  }

  /** What each model needs; they are forgotten. */
  take(): ReadonlyMap<Model, RequestTokens> {
    const taken = this.#requests;
    this.#requests = new Map();
    return taken;
  }
}

/** The longest queue before an upstream, in requests: the position of each of them in it is found by counting. */
export const maxQueue = 1_000;

/** The answers with which a `retry-after` counts: some upstreams send it with answers that are none of these, too. */
const pausingStatuses: ReadonlySet<number> = new Set([429, 503, 529]);

/** A member of a limiter's queue: what it asks for. */
export interface Waiting {
  readonly request: PermitRequest;
}

/** A request in progress. It counts in the limits of its upstream, and in those of its model if that has any. */
export interface LimitedCall {
  readonly keyId: string;
  readonly model: Model;
  /** What its key was charged in the fair order, and whether that was its tokens. */
  readonly cost: number;
  readonly isByTokens: boolean;
  readonly ofAll: CountedCall;
  readonly ofModel: { readonly limits: CountedLimits; readonly call: CountedCall } | null;
}

/**
 * The limiter of one upstream: its limits, those of its models, the calls in flight, and the requests that wait. A request has
 * its permit under both at once. All wait in one queue, in which those are passed over whose models pause or are used up to
 * limits of their own. It knows no timers and no promises: times are given to it, on the monotonic clock, in milliseconds.
 */
export class UpstreamLimiter<Member extends Waiting> {
  readonly upstream: string;
  readonly queue = new FairQueue<Member>(({ request }) => request.tokens);
  /** What holds all requests, and what holds those for some models alone. */
  readonly ofAll: CountedLimits;
  readonly models: ModelLimits;
  settings: LimiterSettings;
  readonly missed = new Missed();
  /** What a cost in the fair order is: one for a request, or its tokens. */
  #costsTokens: boolean;

  constructor(upstream: string, settings: LimiterSettings, ports: LimiterPorts) {
    this.upstream = upstream;
    this.settings = settings;
    this.ofAll = new CountedLimits(upstream, settings, (limit) => ports.quotaOf(upstream, limit));
    this.models = new ModelLimits(upstream, ports);
    this.models.configure(settings.models);
    this.#costsTokens = this.#countsTokens;
  }

  configure(settings: LimiterSettings): void {
    this.settings = settings;
    this.ofAll.configure(settings);
    this.models.configure(settings.models);
  }

  /** The upstream is another one from this config on: forgets what answers taught. What is in progress goes on. */
  forget(config: number): void {
    this.ofAll.forget(config);
    this.models.forget(config);
  }

  /** Whether requests for a model need a permit. */
  limits(model: Model): boolean {
    return isLimited(this.settings) || this.models.of(model) !== undefined;
  }

  /** What the service of a request costs its key. */
  costOf(tokens: RequestTokens): number {
    const costsTokens = this.#countsTokens;
    if (costsTokens !== this.#costsTokens) {
      this.#costsTokens = costsTokens;
      // A cost in tokens among costs of one each would keep its key waiting behind thousands of others.
      this.queue.reprice(({ request }) => this.#price(request.tokens));
    }
    return this.#price(tokens);
  }

  /** In how many milliseconds a request for a model may start: 0 at once, `Infinity` if another one has to end first. */
  startsInMs(model: Model, tokens: RequestTokens, extent: Extent, nowMs: number): number {
    const ofModelMs = this.models.startsInMs(model, tokens, extent, nowMs);
    return Math.max(ofModelMs, this.#ofAllInMs(model, tokens, extent, nowMs));
  }

  /**
   * The lanes that a request passes if it starts now; `null` if it may not without waiting: no permit is free, or one waits that
   * has to start before it.
   */
  passes(model: Model, tokens: RequestTokens, nowMs: number): HeldLanes | null {
    if (this.startsInMs(model, tokens, 'quota', nowMs) > 0) return null;
    if (this.queue.size === 0) return noLanes;
    const { ticket, isHeld, lanes } = this.next(nowMs);
    return ticket === null && !isHeld(model) ? lanes : null;
  }

  /** Who is next in the queue. */
  next(nowMs: number): Turn<Member> {
    return nextTurn(this.queue, {
      ofModelMs: (model, tokens) => this.#ofModelInMs(model, tokens, 'quota', nowMs),
      // Who waits for what has no limits any more waits for no pause either.
      ofAllMs: (model, tokens) => (this.limits(model) ? this.#ofAllInMs(model, tokens, 'quota', nowMs) : 0),
      ofRestMs: (model, tokens) => this.#ofRestInMs(model, tokens, 'quota', nowMs),
    });
  }

  /** Whether no more requests may wait for any of some models. Those whose own models are held fill no queue but theirs. */
  isFull(models: readonly Model[], nowMs: number): boolean {
    const { size, lanes } = this.queue;
    const { queue } = this.settings;
    if (size >= maxQueue) return true;
    if (size >= queue && lanes.ahead(models, this.heldAt(nowMs)).all.requests >= queue) return true;
    return models.every((model) => {
      const limits = this.models.of(model);
      return limits !== undefined && lanes.waitingFor(model).requests >= limits.settings.queue;
    });
  }

  /** How long a request may wait for any of some models, in milliseconds. */
  queueWaitMs(models: readonly Model[]): number {
    const waits = models.map((model) => (this.models.of(model)?.settings ?? this.settings).queueWaitMs);
    return Math.max(...waits);
  }

  /** A request starts, for which a permit must be free. One of the queue must have been taken out of it with `queue.serve`. */
  begin(
    request: Pick<PermitRequest, 'keyId' | 'tokens' | 'config'>,
    model: Model,
    cost: number,
    nowMs: number,
  ): LimitedCall {
    this.models.pauses.began(model, nowMs);
    const limits = this.models.of(model);
    return {
      keyId: request.keyId,
      model,
      cost,
      isByTokens: this.#costsTokens,
      ofAll: this.ofAll.begin(request, nowMs, !this.models.learns(model)),
      ofModel: limits === undefined ? null : { limits, call: limits.begin(request, nowMs) },
    };
  }

  answered({ model, ofAll, ofModel }: LimitedCall, head: AnswerReport, nowMs: number): void {
    const { status, retryAfterMs } = head;
    const pausesMs = [
      this.ofAll.answered(ofAll, head, nowMs),
      ofModel?.limits.answered(ofModel.call, head, nowMs) ?? 0,
      retryAfterMs !== null && pausingStatuses.has(status) ? retryAfterMs : 0,
    ];
    if (this.ofAll.teaches(ofAll)) this.models.pauses.answered(model, ofAll, { status, pausesMs }, nowMs);
  }

  release(call: LimitedCall, usage: RequestTokens | null, nowMs: number): void {
    const { model, ofAll, ofModel, cost, isByTokens } = call;
    if (!this.ofAll.release(ofAll, usage, nowMs)) return;
    this.models.pauses.ended(model, ofAll, nowMs);
    ofModel?.limits.release(ofModel.call, usage, nowMs);
    this.#correct(call, isByTokens && usage !== null ? usage.input + usage.output - cost : 0);
  }

  /** A request releases its permit without having been sent: others may start instead. */
  releaseUnused(call: LimitedCall, nowMs: number): void {
    const { model, ofAll, ofModel, cost } = call;
    if (!this.ofAll.releaseUnused(ofAll, nowMs)) return;
    this.models.pauses.releasedUnused(model, ofAll);
    ofModel?.limits.releaseUnused(ofModel.call, nowMs);
    this.#correct(call, -cost);
  }

  /** The lanes whose models hold all requests now, which others pass; of the whole limits, or of the quota of them here. */
  heldAt(nowMs: number, extent: Extent = 'quota'): HeldAndOpen {
    return this.queue.lanes.split(({ models }) =>
      models.every(
        (model) =>
          this.#ofModelInMs(model, noTokens, extent, nowMs) > 0 ||
          (this.#ofRestInMs(model, noTokens, extent, nowMs) ?? 0) > 0,
      ),
    );
  }

  /** How long a request for any of some models has to wait behind others of the queue, in milliseconds: an estimate. */
  expectedMs(models: readonly Model[], { all, lane }: Ahead, tokens: RequestTokens, nowMs: number): number {
    const ofModels = models.map((model) => this.models.waitMs(model, lane, tokens, nowMs));
    const learns = !models.some((model) => this.models.learns(model));
    return Math.ceil(Math.max(Math.min(...ofModels), this.ofAll.waitMs(all, tokens, nowMs, learns)));
  }

  get #countsTokens(): boolean {
    return this.ofAll.countsTokens || [...this.models.all().values()].some((limits) => limits.countsTokens);
  }

  #price({ input, output }: RequestTokens): number {
    return this.#costsTokens ? Math.max(1, input + output) : 1;
  }

  /** The same of a model alone; nothing holds those that still wait for one that has no limits any more. */
  #ofModelInMs(model: Model, tokens: RequestTokens, extent: Extent, nowMs: number): number {
    return this.limits(model) ? this.models.startsInMs(model, tokens, extent, nowMs) : 0;
  }

  /** The same of what is learned of all models but those that learn limits of their own; `null` if there are none of these. */
  #ofRestInMs(model: Model, tokens: RequestTokens, extent: Extent, nowMs: number): number | null {
    if (!this.models.someLearn || this.models.learns(model) || !this.limits(model)) return null;
    return Math.max(0, this.ofAll.learnedAtMs(tokens, extent, nowMs) - nowMs);
  }

  /** In how many milliseconds nothing of all models holds a request; `Infinity` if another one has to end first. */
  #ofAllInMs(model: Model, tokens: RequestTokens, extent: Extent, nowMs: number): number {
    const atMs = Math.max(
      this.models.pauses.ofAllOverAtMs(extent),
      this.ofAll.availableAtMs(tokens, extent, nowMs, !this.models.learns(model)),
    );
    return Math.max(0, atMs - nowMs);
  }

  /** A request is gone: its key has to be charged something beside the cost. */
  #correct({ keyId, isByTokens }: LimitedCall, correction: number): void {
    if (correction !== 0 && isByTokens === this.#costsTokens) this.queue.correct(keyId, correction);
    if (this.ofAll.inFlight === 0 && this.queue.size === 0) this.queue.forget();
  }
}
