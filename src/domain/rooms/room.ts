import type { LimitUse } from '../ports/room-shares.ts';
import type { RoomRequest, RoomSettings, RoomTokens, RoomView } from '../ports/rooms.ts';
import { Roster } from '../../shared/roster.ts';
import type { Place } from '../../shared/roster.ts';
import { ConfiguredLimits } from './configured-limits.ts';
import type { Extent, ShareOf } from './configured-limits.ts';
import { FairQueue } from './fair-queue.ts';
import { HeldTimes } from './held-times.ts';
import { LearnedLimits } from './learned-limits.ts';
import type { AnswerReport } from './learned-limits.ts';
import { LoadSum } from './load.ts';
import type { Load } from './load.ts';
import { Pause } from './pause.ts';
import type { Stay } from './stay.ts';

/** The answers with which a `retry-after` counts: some upstreams send it with answers that are none of these, too. */
const pausingStatuses: ReadonlySet<number> = new Set([429, 503, 529]);

/** A member of a room's queue: what it asks for. */
interface Waiting {
  readonly request: RoomRequest;
}

/** A request in progress, with its place in the list of them. */
export interface RoomStay extends Stay {
  readonly keyId: string;
  /** What its key was charged in the fair order, and whether that was its tokens. */
  readonly cost: number;
  readonly isByTokens: boolean;
  /** The number of the config by which it was sent; infinite for the latest one. */
  readonly config: number;
  place: Place<RoomStay> | null;
}

/**
 * The room of one upstream: its limits, those that it reports, who is in, and who waits. It knows no timers and no promises:
 * times are given to it, on the monotonic clock, in milliseconds.
 */
export class Room<Member extends Waiting> {
  readonly upstream: string;
  readonly queue = new FairQueue<Member>(({ request }) => request.tokens);
  settings: RoomSettings;
  /** The tokens of a request that could not start at once and did not wait, until its need was told. */
  missed: RoomTokens | null = null;
  readonly #configured: ConfiguredLimits;
  readonly #stays = new Roster<RoomStay>();
  #held = new HeldTimes();
  #learned = new LearnedLimits(() => this.#ofThisUpstream());
  /** The number of the first config with this upstream; answers to requests of earlier ones say nothing of it. */
  #firstConfig = 0;
  #seq = 0;
  #pause = new Pause();
  /** What a cost in the fair order is: one for a request, or its tokens. */
  #costsTokens: boolean;

  /** `shareOf` says how much of a limit this process may use now, if it shares them with others. */
  constructor(upstream: string, settings: RoomSettings, shareOf: ShareOf) {
    this.upstream = upstream;
    this.settings = settings;
    this.#configured = new ConfiguredLimits(settings, shareOf);
    this.#costsTokens = settings.tokensPerMinute !== null;
  }

  get inFlight(): number {
    return this.#stays.size;
  }

  configure(settings: RoomSettings): void {
    this.settings = settings;
    this.#configured.limits = settings;
  }

  /** The upstream is another one from this config on: forgets what answers taught. What is in progress goes on. */
  forget(config: number): void {
    this.#firstConfig = config;
    this.#held = new HeldTimes();
    this.#learned = new LearnedLimits(() => this.#ofThisUpstream());
    this.#pause = new Pause();
  }

  /** The most requests in progress now; `null` for any number. */
  maxInFlight(extent: Extent = 'share'): number | null {
    const maxInFlight = this.#configured.most('maxInFlight', extent);
    const learned = this.settings.learnLimits ? this.#learned.maxInFlight : null;
    if (maxInFlight === null || learned === null) return maxInFlight ?? learned;
    return Math.min(maxInFlight, learned);
  }

  /** What the service of a request costs its key. */
  costOf(tokens: RoomTokens): number {
    const costsTokens =
      this.#configured.limits.tokensPerMinute !== null ||
      (this.settings.learnLimits && this.#learned.countsTokens);
    if (costsTokens !== this.#costsTokens) {
      this.#costsTokens = costsTokens;
      // A cost in tokens among costs of one each would keep its key waiting behind thousands of others.
      this.queue.reprice(({ request }) => this.#price(request.tokens));
    }
    return this.#price(tokens);
  }

  /** When a request may start: now or earlier if it may at once; `Infinity` if another one has to end first. */
  availableAtMs(tokens: RoomTokens, extent: Extent, nowMs: number): number {
    const maxInFlight = extent === 'certain' ? null : this.maxInFlight(extent);
    if (maxInFlight !== null && this.#stays.size >= maxInFlight) return Number.POSITIVE_INFINITY;
    const atMs = Math.max(
      this.#pause.overAtMs(extent),
      this.#configured.availableAtMs(tokens, extent, nowMs),
    );
    if (!this.settings.learnLimits) return atMs;
    return Math.max(atMs, this.#learned.availableAtMs(tokens, extent, nowMs));
  }

  /** What this process uses of each configured limit, and what those that wait need beside that, or the one that was missed. */
  uses(nowMs: number): readonly LimitUse[] {
    const waiting = new LoadSum(this.queue.load);
    if (this.missed !== null) waiting.add(this.missed);
    this.missed = null;
    return this.#configured.uses(this.upstream, this.#stays.size, waiting, nowMs);
  }

  /** A request starts, for which there must be room. One of the queue must have been taken out of it with `queue.serve`. */
  begin(request: Pick<RoomRequest, 'keyId' | 'tokens' | 'config'>, cost: number, nowMs: number): RoomStay {
    const { keyId, tokens, config = Number.POSITIVE_INFINITY } = request;
    const stay: RoomStay = {
      keyId,
      seq: this.#seq++,
      startedMs: nowMs,
      tokens,
      cost,
      isByTokens: this.#costsTokens,
      config,
      planned: tokens,
      isAnswered: false,
      isInputSeen: false,
      place: null,
    };
    this.#pause.began(nowMs);
    this.#configured.began(stay, nowMs);
    if (this.settings.learnLimits && this.#teaches(stay)) this.#learned.began(stay, nowMs);
    stay.place = this.#stays.add(stay);
    return stay;
  }

  answered(stay: RoomStay, head: AnswerReport, nowMs: number): void {
    stay.isAnswered = true;
    if (!this.#teaches(stay)) return;
    this.#pause.ended(stay);
    const { status, retryAfterMs } = head;
    if (retryAfterMs !== null && pausingStatuses.has(status)) this.#pause.extend(retryAfterMs, nowMs);
    if (this.settings.learnLimits) this.#pause.extend(this.#learned.answered(stay, head, nowMs), nowMs);
  }

  leave(stay: RoomStay, usage: RoomTokens | null, nowMs: number): void {
    if (stay.place === null) return;
    this.#pause.ended(stay);
    this.#configured.left(stay, usage, nowMs);
    if (this.#teaches(stay)) {
      if (this.settings.learnLimits) this.#learned.left(stay, usage, nowMs);
      // A call that failed before its answer says nothing of how long answers take.
      if (stay.isAnswered) this.#held.add(nowMs - stay.startedMs);
    }
    const unexpected = stay.isByTokens && usage !== null ? usage.input + usage.output - stay.cost : 0;
    this.#remove(stay, stay.place, unexpected);
  }

  /** A request gives its place back without having been sent: others may start in its place. */
  withdraw(stay: RoomStay, nowMs: number): void {
    if (stay.place === null) return;
    this.#pause.withdrawn(stay);
    this.#configured.withdrawn(stay, nowMs);
    if (this.settings.learnLimits && this.#teaches(stay)) this.#learned.withdrawn(stay, nowMs);
    this.#remove(stay, stay.place, -stay.cost);
  }

  /** How long the upstream is not used, as its answers asked for, in milliseconds. */
  pausedMs(nowMs: number): number {
    return this.#pause.leftMs(nowMs);
  }

  /** How long a request has to wait behind some others of the queue, in milliseconds: an estimate. */
  expectedMs(ahead: Load, tokens: RoomTokens, nowMs: number): number {
    const sum = { input: ahead.input + tokens.input, output: ahead.output + tokens.output };
    const requests = ahead.requests + 1;
    const maxInFlight = this.maxInFlight();
    const forPlaces =
      maxInFlight === null ? 0 : this.#held.waitMs(this.#stays.all(), maxInFlight, ahead.requests, nowMs);
    const forLimits = this.#configured.waitMs(requests, sum.input + sum.output, nowMs);
    const forLearned = this.settings.learnLimits ? this.#learned.waitMs(requests, sum, nowMs) : 0;
    return Math.ceil(Math.max(this.pausedMs(nowMs), forPlaces, forLimits, forLearned));
  }

  view(nowMs: number): RoomView {
    const { learnLimits } = this.settings;
    return {
      upstream: this.upstream,
      inFlight: this.#stays.size,
      maxInFlight: this.maxInFlight(),
      startsLeft: this.#configured.startsLeft(nowMs),
      tokensLeft: this.#configured.tokensLeft(nowMs),
      learned: learnLimits ? this.#learned.views(nowMs) : [],
      learnedInFlight: learnLimits ? this.#learned.learnedInFlight : null,
      pausedMs: this.pausedMs(nowMs),
      waiting: this.queue.size,
      expectedMs: this.expectedMs(this.queue.load, { input: 0, output: 0 }, nowMs),
    };
  }

  #price({ input, output }: RoomTokens): number {
    return this.#costsTokens ? Math.max(1, input + output) : 1;
  }

  /** Whether a request was sent to the upstream that has the name now: what came of others says nothing of it. */
  #teaches({ config }: RoomStay): boolean {
    return config >= this.#firstConfig;
  }

  /** Removes a request from those in progress; `correction` is what its key has to be charged beside the cost. */
  #remove(stay: RoomStay, place: Place<RoomStay>, correction: number): void {
    stay.place = null;
    this.#stays.remove(place);
    if (correction !== 0 && stay.isByTokens === this.#costsTokens) this.queue.correct(stay.keyId, correction);
    if (this.#stays.size === 0 && this.queue.size === 0) this.queue.forget();
  }

  /** The requests in progress but those that went to another upstream of this name. */
  #ofThisUpstream(): readonly Stay[] {
    const all = this.#stays.all();
    return this.#firstConfig === 0 ? all : all.filter((stay) => this.#teaches(stay));
  }
}
