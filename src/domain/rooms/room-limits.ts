import type { LimitUse } from '../ports/room-shares.ts';
import type { LimitSettings, LimitsView, RoomRequest, RoomTokens } from '../ports/rooms.ts';
import { Roster } from '../../shared/roster.ts';
import type { Place } from '../../shared/roster.ts';
import { ConfiguredLimits } from './configured-limits.ts';
import type { Extent, ShareOf } from './configured-limits.ts';
import { HeldTimes } from './held-times.ts';
import { LearnedLimits } from './learned-limits.ts';
import type { AnswerReport } from './learned-limits.ts';
import type { Load } from './load.ts';
import type { Stay } from './stay.ts';

/** A request in progress, with its place in the list of them. */
export interface LimitedStay extends Stay {
  /** The number of the config by which it was sent; infinite for the latest one. */
  readonly config: number;
  /** Whether it counts in what is learned here: not where its model learns limits of its own. */
  readonly learns: boolean;
  place: Place<LimitedStay> | null;
}

/** Whether any limit is set: nothing waits for what has none. */
export function isLimited(settings: LimitSettings): boolean {
  const { maxInFlight, requestsPerMinute, tokensPerMinute, learnLimits } = settings;
  return learnLimits || maxInFlight !== null || requestsPerMinute !== null || tokensPerMinute !== null;
}

/**
 * Limits of an upstream, or of one model there: those that are configured, those that its answers report, and who is in
 * progress under them. Times are on the monotonic clock, in milliseconds.
 */
export class RoomLimits {
  readonly #name: string;
  readonly #configured: ConfiguredLimits;
  readonly #stays = new Roster<LimitedStay>();
  #settings: LimitSettings;
  #held = new HeldTimes();
  #learned = new LearnedLimits(() => this.#ofThisUpstream());
  /** The number of the first config with this upstream; answers to requests of earlier ones say nothing of it. */
  #firstConfig = 0;
  /** How many of the requests in progress do not count in what is learned. */
  #apart = 0;
  #seq = 0;

  /** `name` is that of their shares; `shareOf` says how much of a limit this process may use now, if it shares them. */
  constructor(name: string, settings: LimitSettings, shareOf: ShareOf) {
    this.#name = name;
    this.#settings = settings;
    this.#configured = new ConfiguredLimits(settings, shareOf);
  }

  get settings(): LimitSettings {
    return this.#settings;
  }

  /** Whether tokens are limited: then they are what is scarce. */
  get countsTokens(): boolean {
    const { tokensPerMinute, learnLimits } = this.#settings;
    return tokensPerMinute !== null || (learnLimits && this.#learned.countsTokens);
  }

  configure(settings: LimitSettings): void {
    this.#settings = settings;
    this.#configured.limits = settings;
  }

  /** The upstream is another one from this config on: forgets what answers taught. What is in progress goes on. */
  forget(config: number): void {
    this.#firstConfig = config;
    this.#held = new HeldTimes();
    this.#learned = new LearnedLimits(() => this.#ofThisUpstream());
  }

  /** Whether a request was sent to the upstream that has the name now: what came of others says nothing of it. */
  teaches({ config }: LimitedStay): boolean {
    return config >= this.#firstConfig;
  }

  /** When a request may start: now or earlier if it may at once; `Infinity` if another one has to end first. */
  availableAtMs(tokens: RoomTokens, extent: Extent, nowMs: number, learns = true): number {
    const most = extent === 'certain' ? null : this.#configured.most('maxInFlight', extent);
    if (most !== null && this.#stays.size >= most) return Number.POSITIVE_INFINITY;
    const atMs = this.#configured.availableAtMs(tokens, extent, nowMs);
    return learns ? Math.max(atMs, this.learnedAtMs(tokens, extent, nowMs)) : atMs;
  }

  /** The same by what is learned alone. */
  learnedAtMs(tokens: RoomTokens, extent: Extent, nowMs: number): number {
    if (!this.#settings.learnLimits) return 0;
    const { maxInFlight } = this.#learned;
    const isFull = maxInFlight !== null && this.#stays.size - this.#apart >= maxInFlight;
    if (isFull && extent !== 'certain') return Number.POSITIVE_INFINITY;
    return this.#learned.availableAtMs(tokens, extent, nowMs);
  }

  /** What this process uses of each configured limit, and what those that wait need beside that. */
  uses(waiting: Load, nowMs: number): readonly LimitUse[] {
    return this.#configured.uses(this.#name, this.#stays.size, waiting, nowMs);
  }

  /** A request starts, for which there must be room. */
  begin(
    { tokens, config = Number.POSITIVE_INFINITY }: Pick<RoomRequest, 'tokens' | 'config'>,
    nowMs: number,
    learns = true,
  ) {
    const stay: LimitedStay = {
      seq: this.#seq++,
      startedMs: nowMs,
      tokens,
      config,
      learns,
      planned: tokens,
      isAnswered: false,
      isInputSeen: false,
      place: null,
    };
    this.#configured.began(stay, nowMs);
    if (this.#isTaught(stay)) this.#learned.began(stay, nowMs);
    if (!learns) this.#apart++;
    stay.place = this.#stays.add(stay);
    return stay;
  }

  /** Notes the head of an answer. Returns the pause that it needs without having asked for one, in milliseconds. */
  answered(stay: LimitedStay, head: AnswerReport, nowMs: number): number {
    stay.isAnswered = true;
    return this.#isTaught(stay) ? this.#learned.answered(stay, head, nowMs) : 0;
  }

  /** A request ends; returns whether it was in progress. `usage` is `null` where it is unknown. */
  leave(stay: LimitedStay, usage: RoomTokens | null, nowMs: number): boolean {
    if (stay.place === null) return false;
    this.#configured.left(stay, usage, nowMs);
    if (this.#isTaught(stay)) this.#learned.left(stay, usage, nowMs);
    // A call that failed before its answer says nothing of how long answers take.
    if (this.teaches(stay) && stay.isAnswered) this.#held.add(nowMs - stay.startedMs);
    return this.#remove(stay);
  }

  /** A request gives its place back without having been sent: others may start in its place. */
  withdraw(stay: LimitedStay, nowMs: number): boolean {
    if (stay.place === null) return false;
    this.#configured.withdrawn(stay, nowMs);
    if (this.#isTaught(stay)) this.#learned.withdrawn(stay, nowMs);
    return this.#remove(stay);
  }

  /** How long a request has to wait behind some others, in milliseconds: an estimate. */
  waitMs(ahead: Load, tokens: RoomTokens, nowMs: number, learns = true): number {
    const sum = { input: ahead.input + tokens.input, output: ahead.output + tokens.output };
    const requests = ahead.requests + 1;
    const maxInFlight = learns ? this.#maxInFlight() : this.#configured.most('maxInFlight');
    const forPlaces =
      maxInFlight === null ? 0 : this.#held.waitMs(this.#stays.all(), maxInFlight, ahead.requests, nowMs);
    const forLimits = this.#configured.waitMs(requests, sum.input + sum.output, nowMs);
    const forLearned = learns && this.#settings.learnLimits ? this.#learned.waitMs(requests, sum, nowMs) : 0;
    return Math.max(forPlaces, forLimits, forLearned);
  }

  view(nowMs: number): Omit<LimitsView, 'pausedMs' | 'waiting' | 'expectedMs'> {
    const { learnLimits } = this.#settings;
    return {
      inFlight: this.#stays.size,
      maxInFlight: this.#maxInFlight(),
      startsLeft: this.#configured.startsLeft(nowMs),
      tokensLeft: this.#configured.tokensLeft(nowMs),
      learned: learnLimits ? this.#learned.views(nowMs) : [],
      learnedInFlight: learnLimits ? this.#learned.learnedInFlight : null,
    };
  }

  get inFlight(): number {
    return this.#stays.size;
  }

  /** The most requests in progress now; `null` for any number. */
  #maxInFlight(): number | null {
    const maxInFlight = this.#configured.most('maxInFlight');
    const learned = this.#settings.learnLimits ? this.#learned.maxInFlight : null;
    if (maxInFlight === null || learned === null) return maxInFlight ?? learned;
    return Math.min(maxInFlight, learned);
  }

  #remove(stay: LimitedStay): boolean {
    const { place } = stay;
    stay.place = null;
    if (!stay.learns) this.#apart--;
    return place !== null && this.#stays.remove(place);
  }

  #isTaught(stay: LimitedStay): boolean {
    return this.#settings.learnLimits && stay.learns && this.teaches(stay);
  }

  /** The requests in progress that count in what is learned: none that went to another upstream of this name. */
  #ofThisUpstream(): readonly Stay[] {
    const all = this.#stays.all();
    const areAll = this.#firstConfig === 0 && this.#apart === 0;
    return areAll ? all : all.filter((stay) => stay.learns && this.teaches(stay));
  }
}
