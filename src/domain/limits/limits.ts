import { formatDuration } from '../../shared/duration.ts';
import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { withoutAbsent } from '../../shared/override.ts';

/** The limits of one key. */
export interface Limits {
  /** Requests in progress at once. */
  readonly concurrency: number;
  /** Starts in any 60 seconds; all of them may come at once. */
  readonly requestsPerMinute: number;
  /** How long a request may wait for one of the slots, in milliseconds; 0 refuses it at once. */
  readonly queueWaitMs: number;
  /** Tokens of input and output in any 60 seconds, and in any 24 hours; none of these is limited without a value. */
  readonly tokensPerMinute?: number;
  readonly tokensPerDay?: number;
}

/** Limits as a config names them. */
type LimitSettings = {
  readonly [Name in Exclude<keyof Limits, 'queueWaitMs'>]?: Limits[Name] | undefined;
} & {
  readonly queueWait?: number | undefined;
};

type DefaultSettings = LimitSettings & {
  readonly concurrency: number;
  readonly requestsPerMinute: number;
  readonly queueWait: number;
};

/** The limits of a config. They are named one by one: a limit that is added does not compile before it is read here. */
export function limitsFrom(settings: DefaultSettings): Limits;
export function limitsFrom(settings: LimitSettings): Partial<Limits>;
export function limitsFrom(settings: LimitSettings): Partial<Limits> {
  const { concurrency, requestsPerMinute, queueWait: queueWaitMs, tokensPerMinute, tokensPerDay } = settings;
  const all = { concurrency, requestsPerMinute, queueWaitMs, tokensPerMinute, tokensPerDay };
  return withoutAbsent(all satisfies Record<keyof Limits, number | undefined>);
}

/** The sliding window in which starts are counted, in milliseconds. */
export const frequencyWindowMs = 60_000;

/** A number of starts that no key reaches in a window: that of a group is not limited. */
export const unlimitedStarts = 2_147_483_647;

/** How many requests of one key may wait for a slot; the next one is refused at once. */
export const maxWaitingRequests = 100;

/** `retry-after` for a concurrency limit, in milliseconds. A guess: when a running request ends is unknown. */
const concurrencyRetryMs = 1_000;

/** The decision on a start: granted, or the limit that was reached. */
export interface LimitDecision {
  readonly verdict: 'granted' | 'concurrency' | 'rate';
  /** Requests in progress, this one included when it was granted. */
  readonly inFlight: number;
  /** Starts left in the current 60 seconds. */
  readonly remainingStarts: number;
  /** Milliseconds until the next used start expires; 0 when none has been used. */
  readonly resetMs: number;
  /** Set where the request could have waited, but as many as may wait did so already. */
  readonly isQueueFull?: true;
}

/** The limited thing, as refusals name it. */
interface LimitedThing {
  readonly one: string;
  readonly many: string;
  /** Whether an operator may let them wait. */
  readonly canWait: boolean;
}

const requests: LimitedThing = { one: 'one request', many: 'requests', canWait: true };

/** The refusal for a decision; `null` when the start was granted. */
export function limitRefusal(
  decision: LimitDecision,
  limits: Limits,
  things: LimitedThing = requests,
): Refusal | null {
  const { inFlight, resetMs } = decision;
  switch (decision.verdict) {
    case 'granted':
      return null;
    case 'concurrency':
      return refuse(
        'concurrency_limit_exceeded',
        `This key may have ${count(limits.concurrency, things)} in progress at once and has ${inFlight}. ` +
          adviseWaiting(decision, things.canWait ? limits.queueWaitMs : null, 'this key'),
        { limit: concurrencyDetail('key', limits.concurrency, inFlight) },
      );
    case 'rate':
      return refuse(
        'rate_limit_exceeded',
        `This key may start ${count(limits.requestsPerMinute, things)} in any 60 seconds and has reached that limit. ` +
          `Try again in ${Math.ceil(resetMs / 1_000)}s.`,
        {
          limit: { source: 'key', kind: 'rate', limit: limits.requestsPerMinute, retryAfterMs: resetMs },
        },
      );
  }
}

/** The reached limit of requests in progress behind a refusal. */
export function concurrencyDetail(source: 'key' | 'group', limit: number | null, inFlight: number) {
  return { source, kind: 'concurrency', limit, inFlight, retryAfterMs: concurrencyRetryMs } as const;
}

/**
 * What follows a reached limit of slots: how the client or the operator gets on. `queueWaitMs` is how long the request could
 * wait, `null` for one that never can; `holder` is whose queue it is.
 */
export function adviseWaiting(
  { isQueueFull }: Pick<LimitDecision, 'isQueueFull'>,
  queueWaitMs: number | null,
  holder: string,
): string {
  const wait = 'Wait for one of them to end.';
  if (isQueueFull)
    return `${maxWaitingRequests} requests of ${holder} wait for a slot already: the queue is full.`;
  if (queueWaitMs === null) return wait;
  if (queueWaitMs === 0) return `${wait} The operator can let ${holder} wait for a slot: queueWait.`;
  return `None of them ended within ${formatDuration(queueWaitMs)}.`;
}

function count(number: number, { one, many }: LimitedThing): string {
  return number === 1 ? one : `${number} ${many}`;
}

/** The limit behind a refusal, by its kind; `null` for any other refusal. Limits of a provider are `upstream`. */
export function limitOf({ code, limit }: Refusal): string | null {
  if (code === 'insufficient_balance') return 'balance';
  if (code === 'balance_held') return 'held';
  if (code === 'budget_exhausted') return 'budget';
  if (code === 'budget_held') return 'budget_held';
  if (limit === null) return null;
  return limit.source === 'upstream' && limit.kind !== 'queue' ? 'upstream' : limit.kind;
}

/**
 * The limit of this gateway behind a refusal, one of a closed list: those of a group are told apart from those of a key.
 * `null` for any other refusal, also for those of a provider.
 */
export function ownLimitOf(refusal: Refusal): string | null {
  const limit = limitOf(refusal);
  if (limit === null || limit === 'upstream') return null;
  const source = refusal.limit?.source ?? refusal.budget?.source;
  return source === 'group' ? `group_${limit}` : limit;
}
