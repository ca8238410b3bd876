import type { LimitUse } from '../ports/quotas.ts';
import type { LimitSettings, LimitsView, PermitRequest, RequestTokens } from '../ports/upstream-limiters.ts';
import { Roster } from '../../shared/roster.ts';
import type { Position } from '../../shared/roster.ts';
import { ConfiguredLimits } from './configured-limits.ts';
import type { Extent, QuotaOf } from './configured-limits.ts';
import { HeldTimes } from './held-times.ts';
import { LearnedLimits } from './learned-limits.ts';
import type { AnswerReport } from './learned-limits.ts';
import type { Load, CallInFlight } from './load.ts';

/** A call in flight, with its position in the list of them. */
export interface CountedCall extends CallInFlight {
  /** The number of the config by which it was sent; infinite for the latest one. */
  readonly config: number;
  /** Whether it counts in what is learned here: not where its model learns limits of its own. */
  readonly learns: boolean;
  position: Position<CountedCall> | null;
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
export class CountedLimits {
  readonly #name: string;
  readonly #configured: ConfiguredLimits;
  readonly #calls = new Roster<CountedCall>();
  #settings: LimitSettings;
  #held = new HeldTimes();
  #learned = new LearnedLimits(() => this.#ofThisUpstream());
  /** The number of the first config with this upstream; answers to requests of earlier ones say nothing of it. */
  #firstConfig = 0;
  /** How many of the requests in progress do not count in what is learned. */
  #apart = 0;
  #seq = 0;

  /**
   * `name` is that of their quotas; `quotaOf` says how much of a limit this process may use now, if it shares them with others.
   */
  constructor(name: string, settings: LimitSettings, quotaOf: QuotaOf) {
    this.#name = name;
    this.#settings = settings;
    this.#configured = new ConfiguredLimits(settings, quotaOf);
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
  teaches({ config }: CountedCall): boolean {
    return config >= this.#firstConfig;
  }

  /** When a request may start: now or earlier if it may at once; `Infinity` if another one has to end first. */
  availableAtMs(tokens: RequestTokens, extent: Extent, nowMs: number, learns = true): number {
    const most = extent === 'certain' ? null : this.#configured.most('maxInFlight', extent);
    if (most !== null && this.#calls.size >= most) return Number.POSITIVE_INFINITY;
    const atMs = this.#configured.availableAtMs(tokens, extent, nowMs);
    return learns ? Math.max(atMs, this.learnedAtMs(tokens, extent, nowMs)) : atMs;
  }

  /** The same by what is learned alone. */
  learnedAtMs(tokens: RequestTokens, extent: Extent, nowMs: number): number {
    if (!this.#settings.learnLimits) return 0;
    const { maxInFlight } = this.#learned.bound;
    const isFull = maxInFlight !== null && this.#calls.size - this.#apart >= maxInFlight;
    if (isFull && extent !== 'certain') return Number.POSITIVE_INFINITY;
    return this.#learned.availableAtMs(tokens, extent, nowMs);
  }

  /** What this process uses of each configured limit, and what those that wait need beside that. */
  uses(waiting: Load, nowMs: number): readonly LimitUse[] {
    return this.#configured.uses(this.#name, this.#calls.size, waiting, nowMs);
  }

  /** A request starts, for which there must be a permit. */
  begin(
    { tokens, config = Number.POSITIVE_INFINITY }: Pick<PermitRequest, 'tokens' | 'config'>,
    nowMs: number,
    learns = true,
  ) {
    const call: CountedCall = {
      seq: this.#seq++,
      startedMs: nowMs,
      tokens,
      config,
      learns,
      planned: tokens,
      isAnswered: false,
      isInputSeen: false,
      position: null,
    };
    this.#configured.began(call, nowMs);
    if (this.#isTaught(call)) this.#learned.began(call, nowMs);
    if (!learns) this.#apart++;
    call.position = this.#calls.add(call);
    return call;
  }

  /** Notes the head of an answer. Returns the pause that it needs without having asked for one, in milliseconds. */
  answered(call: CountedCall, head: AnswerReport, nowMs: number): number {
    call.isAnswered = true;
    return this.#isTaught(call) ? this.#learned.answered(call, head, nowMs) : 0;
  }

  /** A request ends; returns whether it was in progress. `usage` is `null` where it is unknown. */
  release(call: CountedCall, usage: RequestTokens | null, nowMs: number): boolean {
    if (call.position === null) return false;
    this.#configured.ended(call, usage, nowMs);
    if (this.#isTaught(call)) this.#learned.ended(call, usage, nowMs);
    // A call that failed before its answer says nothing of how long answers take.
    if (this.teaches(call) && call.isAnswered) this.#held.add(nowMs - call.startedMs);
    return this.#remove(call);
  }

  /** A request releases its permit without having been sent: others may start instead. */
  releaseUnused(call: CountedCall, nowMs: number): boolean {
    if (call.position === null) return false;
    this.#configured.releasedUnused(call, nowMs);
    if (this.#isTaught(call)) this.#learned.releasedUnused(call, nowMs);
    return this.#remove(call);
  }

  /** How long a request has to wait behind some others, in milliseconds: an estimate. */
  waitMs(ahead: Load, tokens: RequestTokens, nowMs: number, learns = true): number {
    const sum = { input: ahead.input + tokens.input, output: ahead.output + tokens.output };
    const requests = ahead.requests + 1;
    const maxInFlight = learns ? this.#maxInFlight() : this.#configured.most('maxInFlight');
    const forPermits =
      maxInFlight === null ? 0 : this.#held.waitMs(this.#calls.all(), maxInFlight, ahead.requests, nowMs);
    const forLimits = this.#configured.waitMs(requests, sum.input + sum.output, nowMs);
    const forLearned = learns && this.#settings.learnLimits ? this.#learned.waitMs(requests, sum, nowMs) : 0;
    return Math.max(forPermits, forLimits, forLearned);
  }

  view(nowMs: number): Omit<LimitsView, 'pausedMs' | 'waiting' | 'expectedMs'> {
    const { learnLimits } = this.#settings;
    return {
      inFlight: this.#calls.size,
      maxInFlight: this.#maxInFlight(),
      startsLeft: this.#configured.startsLeft(nowMs),
      tokensLeft: this.#configured.tokensLeft(nowMs),
      learned: learnLimits ? this.#learned.views(nowMs) : [],
      learnedInFlight: learnLimits ? this.#learned.bound.learned : null,
    };
  }

  get inFlight(): number {
    return this.#calls.size;
  }

  /** The most requests in progress now; `null` for any number. */
  #maxInFlight(): number | null {
    const maxInFlight = this.#configured.most('maxInFlight');
    const learned = this.#settings.learnLimits ? this.#learned.bound.maxInFlight : null;
    if (maxInFlight === null || learned === null) return maxInFlight ?? learned;
    return Math.min(maxInFlight, learned);
  }

  #remove(call: CountedCall): boolean {
    const { position } = call;
    call.position = null;
    if (!call.learns) this.#apart--;
    return position !== null && this.#calls.remove(position);
  }

  #isTaught(call: CountedCall): boolean {
    return this.#settings.learnLimits && call.learns && this.teaches(call);
  }

  /** The requests in progress that count in what is learned: none that went to another upstream of this name. */
  #ofThisUpstream(): readonly CallInFlight[] {
    const all = this.#calls.all();
    const areAll = this.#firstConfig === 0 && this.#apart === 0;
    return areAll ? all : all.filter((call) => call.learns && this.teaches(call));
  }
}
