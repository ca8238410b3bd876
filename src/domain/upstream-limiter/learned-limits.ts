import type { LimitReport, ReportedLimit } from '../../protocol/upstream/limit-headers.ts';
import type { LearnedLimitView, RequestTokens } from '../ports/upstream-limiters.ts';
import type { CallInFlight } from './load.ts';
import type { Extent } from './configured-limits.ts';
import { LearnedLimit } from './learned-limit.ts';
import { arrivalJitterMs } from './minute-window.ts';

/** The most requests in progress before the first answer: it may report limits, or refuse. */
const firstInFlight = 4;

/** What a refusal without a reason leaves of the requests in progress. */
const decrease = 0.5;

/** The first pause after such a refusal, and the longest, in milliseconds: each one in a row doubles it. */
const firstPauseMs = 1_000;
const longestPauseMs = 30_000;

/**
 * How many requests may be in progress at an upstream that refuses without saying how much it takes: fewer after a refusal,
 * and one more after as many answers as there may be requests in progress.
 */
class LearnedBound {
  #learned: number | null = null;
  #isFirst = true;
  /** When the bound was lowered last: refusals of requests from before say nothing new. */
  #loweredMs = Number.NEGATIVE_INFINITY;
  #pauseMs = firstPauseMs;

  /** The most requests in progress now; `null` for any number. */
  get maxInFlight(): number | null {
    return this.#isFirst ? firstInFlight : this.learned;
  }

  /** What refusals led to; `null` without any. */
  get learned(): number | null {
    return this.#learned === null ? null : Math.floor(this.#learned);
  }

  /**
   * Notes the head of an answer: a success, a refusal without a reason, or something else. Returns for how long nothing
   * should be sent, in milliseconds.
   */
  answered(
    { startedMs }: CallInFlight,
    verdict: 'success' | 'refusal' | 'other',
    inFlight: number,
    nowMs: number,
  ): number {
    this.#isFirst = false;
    if (verdict === 'other' || startedMs <= this.#loweredMs) return 0;
    if (verdict === 'success') {
      if (this.#learned !== null) this.#learned += 1 / this.#learned;
      this.#pauseMs = firstPauseMs;
      return 0;
    }
    this.#learned = Math.max(1, Math.min(this.#learned ?? inFlight, inFlight) * decrease);
    this.#loweredMs = nowMs;
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(longestPauseMs, pauseMs * 2);
    return pauseMs;
  }
}

/** The most limits of one upstream that are kept: reports name them from a closed list. */
const maxLimits = 8;

/** The most requests that are remembered after they ended, for reports of answers that took longer. */
const maxEnded = 1_000;

/** How much the latest request counts in the mean share of its expected input that was input. */
const newestShare = 0.1;

/** How much more than that share is planned for a request: some have shorter tokens than others. */
const planMargin = 1.25;

/** How long nothing is sent at most because of what an answer said, in milliseconds: then one request finds out if it holds. */
const maxBlindMs = 600_000;

/** A call that ended while older ones were in progress. */
interface EndedCall extends Pick<CallInFlight, 'seq' | 'startedMs' | 'isAnswered'> {
  readonly endedMs: number;
  readonly used: RequestTokens;
}

/** What the head of an answer says of limits. */
export interface AnswerReport {
  readonly status: number;
  readonly retryAfterMs: number | null;
  readonly report: LimitReport | null;
}

/** What an upstream's answers taught of its limits. Times are on the monotonic clock. */
export class LearnedLimits {
  readonly #limits = new Map<string, LearnedLimit>();
  /** How many requests may be in progress, as answers of 429 without a reason have led to. */
  readonly bound = new LearnedBound();
  /** All requests in progress there, oldest first. */
  readonly #inProgress: () => readonly CallInFlight[];
  #ended: EndedCall[] = [];
  /** The share of the expected input that was input: the most that a text may have is several times what it has. */
  #inputShare = 1;
  /** When the latest of the requests began that were sent and have ended. */
  #sentMs = Number.NEGATIVE_INFINITY;
  /** The latest request whose answer reported limits. */
  #reportedSeq = -1;

  constructor(inProgress: () => readonly CallInFlight[]) {
    this.#inProgress = inProgress;
  }

  get countsTokens(): boolean {
    for (const { counts } of this.#limits.values()) if (counts !== 'requests') return true;
    return false;
  }

  /** When a request may start: now or earlier if it may at once. */
  availableAtMs(tokens: RequestTokens, extent: Extent, nowMs: number): number {
    const planned = this.#plan(tokens);
    let atMs = nowMs;
    for (const limit of this.#limits.values()) {
      // A request that may take more than all of a limit would never start.
      const amount = Math.min(limit.limit, limit.amountOf(planned));
      const open = extent === 'certain' ? this.#openAt(limit) : 0;
      atMs = Math.max(atMs, limit.availableAtMs(amount - open, nowMs));
    }
    return this.#untilTrial(atMs, nowMs);
  }

  /** How long the last of some requests waits that take so much together, in milliseconds. */
  waitMs(requests: number, tokens: RequestTokens, nowMs: number): number {
    const planned = this.#plan(tokens);
    let waitMs = 0;
    for (const limit of this.#limits.values()) {
      // One that may take more than all of a limit starts with all of it, as in `availableAtMs`.
      const amount =
        limit.counts === 'requests' ? requests : Math.min(requests * limit.limit, limit.amountOf(planned));
      waitMs = Math.max(waitMs, limit.availableAtMs(amount, nowMs) - nowMs);
    }
    return this.#untilTrial(nowMs + waitMs, nowMs) - nowMs;
  }

  began(call: CallInFlight, nowMs: number): void {
    call.planned = this.#plan(call.tokens);
    for (const limit of this.#limits.values()) limit.use(limit.amountOf(call.planned), nowMs);
  }

  /**
   * Notes the head of an answer, and the pause that it asks for, if it does. Returns the pause that it needs without having
   * asked for one, in milliseconds.
   */
  answered(call: CallInFlight, { status, retryAfterMs, report }: AnswerReport, nowMs: number): number {
    if (report !== null && call.seq > this.#reportedSeq) this.#report(call, report, nowMs);
    const isExplained = this.availableAtMs(call.tokens, 'quota', nowMs) > nowMs;
    const isRefusal = status === 429 && !isExplained;
    const isSuccess = status >= 200 && status < 300;
    const verdict = isRefusal ? 'refusal' : isSuccess ? 'success' : 'other';
    const pauseMs = this.bound.answered(call, verdict, this.#inProgress().length, nowMs);
    return retryAfterMs === null ? pauseMs : 0;
  }

  /** Notes that a request, which is still among those in flight, ends; `usage` is `null` where it is unknown. */
  ended(call: CallInFlight, usage: RequestTokens | null, nowMs: number): void {
    const { planned, isInputSeen, seq, startedMs, isAnswered } = call;
    const used = usage ?? planned;
    this.#sentMs = Math.max(this.#sentMs, startedMs);
    if (usage !== null && isAnswered && call.tokens.input > 0)
      this.#inputShare += newestShare * (Math.min(1, usage.input / call.tokens.input) - this.#inputShare);
    const correction = {
      input: isInputSeen ? 0 : used.input - planned.input,
      output: used.output - planned.output,
    };
    for (const limit of this.#limits.values())
      if (limit.counts !== 'requests') limit.use(limit.amountOf(correction), nowMs);
    const oldest = this.#inProgress().find((other) => other !== call);
    const oldestMs = oldest?.startedMs ?? Number.POSITIVE_INFINITY;
    this.#ended = this.#ended.filter(({ endedMs }) => endedMs >= oldestMs);
    if (oldestMs > nowMs || this.#ended.length >= maxEnded) return;
    this.#ended.push({ seq, startedMs, isAnswered, endedMs: nowMs, used });
  }

  /** A request that has started is not sent: no report counts it. */
  releasedUnused({ planned }: CallInFlight, nowMs: number): void {
    for (const limit of this.#limits.values()) limit.use(-limit.amountOf(planned), nowMs);
  }

  views(nowMs: number): readonly LearnedLimitView[] {
    return [...this.#limits.values()].map((limit) => ({
      name: limit.name,
      limit: limit.limit,
      left: Math.max(0, Math.floor(limit.level(nowMs))),
    }));
  }

  /** What may come back of a limit when those in progress end: what was planned for them and no report has counted. */
  #openAt(limit: LearnedLimit): number {
    if (limit.counts === 'requests') return 0;
    let open = 0;
    for (const { planned, isInputSeen } of this.#inProgress())
      open += limit.amountOf({ input: isInputSeen ? 0 : planned.input, output: planned.output });
    return open;
  }

  /** A limit that was misreported, or was raised since, must not hold up all requests for as long as it was said to last. */
  #untilTrial(atMs: number, nowMs: number): number {
    if (this.#inProgress().length > 0) return atMs;
    return Math.min(atMs, Math.max(nowMs, this.#sentMs + maxBlindMs));
  }

  #report(call: CallInFlight, report: LimitReport, nowMs: number): void {
    this.#reportedSeq = call.seq;
    for (const reported of report) {
      const known = this.#limits.get(reported.name);
      if (known === undefined && this.#limits.size >= maxLimits) continue;
      known?.level(nowMs);
      if (known !== undefined && known.turnedMs > call.startedMs) continue;
      const unseen = this.#unseenBy(call, reported.counts);
      if (known === undefined) this.#limits.set(reported.name, this.#learn(reported, unseen, nowMs));
      const isChanged = known?.report(reported, unseen, nowMs) ?? true;
      if (reported.counts === 'requests' || !isChanged) continue;
      for (const other of this.#inProgress()) other.isInputSeen ||= !mayBeMissing(other, call);
    }
  }

  #learn(reported: ReportedLimit, unseen: number, nowMs: number): LearnedLimit {
    return new LearnedLimit(reported, unseen, nowMs, ({ counts }) => {
      let pending = 0;
      for (const { planned, isAnswered } of this.#inProgress())
        pending += openOf(planned, counts, !isAnswered);
      return pending;
    });
  }

  /** The most of a limit that was taken but may be missing in the report for one request. */
  #unseenBy(call: CallInFlight, counts: LearnedLimit['counts']): number {
    let unseen = 0;
    for (const other of this.#inProgress())
      unseen += openOf(other.planned, counts, mayBeMissing(other, call));
    for (const other of this.#ended)
      if (other.endedMs >= call.startedMs) unseen += openOf(other.used, counts, mayBeMissing(other, call));
    return unseen;
  }

  /** What is expected of a request, by the share of the most that others used. */
  #plan({ input, output }: RequestTokens): RequestTokens {
    return { input: Math.ceil(input * Math.min(1, this.#inputShare * planMargin)), output };
  }
}

/** Whether a request may have arrived at the upstream after another one, whose answer reports limits. */
function mayBeMissing(
  other: Pick<CallInFlight, 'seq' | 'startedMs' | 'isAnswered'>,
  { seq, startedMs }: CallInFlight,
): boolean {
  if (other.seq === seq) return false;
  return other.seq > seq || !other.isAnswered || other.startedMs > startedMs - arrivalJitterMs;
}

/** What a request may take of a limit beyond what an upstream has counted; `isNew` if that may be nothing of it yet. */
function openOf({ input, output }: RequestTokens, counts: LearnedLimit['counts'], isNew: boolean): number {
  if (counts === 'requests') return isNew ? 1 : 0;
  return (counts === 'output' || !isNew ? 0 : input) + (counts === 'input' ? 0 : output);
}
