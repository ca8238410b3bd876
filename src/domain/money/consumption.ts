import type { Protocol, UpstreamError, Usage } from '../../protocol/text.ts';
import type { ErrorCode } from '../../shared/errors.ts';
import type { ClaimEnd } from '../ports/claims.ts';
import type { BudgetTerms, CountedBudget, StoredPeriod } from '../budgets/budget.ts';
import type { Price } from './pricing.ts';

/**
 * The result of an attempt: a closed set, used by records and metrics. `failure.ts` maps failures to it. `hedge_lost`: it
 * was stopped because another attempt, which ran beside it, had text first, or showed that the request is at fault.
 */
export type AttemptResult =
  | 'ok'
  | 'refused'
  | 'rate_limited'
  | 'overloaded'
  | 'auth'
  | 'unserved'
  | 'stale'
  | 'unreachable'
  | 'unanswered'
  | 'timeout'
  | 'error'
  | 'invalid'
  | 'truncated'
  | 'interrupted'
  | 'hedge_lost';

/** Whether an attempt has failed, rather than that it was stopped from outside. */
export function isFailed(result: string): boolean {
  return result !== 'ok' && result !== 'interrupted' && result !== 'hedge_lost';
}

/** Every way in which a request can end; the closed set behind the `outcome` of records and metrics. */
export const outcomes = [
  'completed',
  'incomplete',
  'refused',
  'upstream_failed',
  'upstream_truncated',
  'first_byte_timeout',
  'idle_timeout',
  'total_timeout',
  'client_closed',
  'cancelled',
  'drained',
  'crashed',
  'lost',
  'server_error',
] as const;

export type Outcome = (typeof outcomes)[number];

/** Whether a request got no whole answer. */
export function isUnanswered(outcome: Outcome | null): outcome is Outcome {
  return outcome !== null && outcome !== 'completed' && outcome !== 'incomplete';
}

/** How a request can end that has no record, as it got the answer of another one: while that ran, or afterwards. */
const joins = ['joined', 'replayed'] as const;

/** What logs and metrics say of the end of a request. */
export type EndOutcome = Outcome | (typeof joins)[number];

export type Mode = 'sync' | 'stream';

/** The kind of a request: for text in one of the protocols, or passed through unchanged. */
export type RequestKind = Protocol | 'passthrough';

/** The consumption record's first half, written when a request is dispatched. */
export interface OpenedRecord {
  /** `req_`, the milliseconds since 1970 in 12 hexadecimal digits, and 20 more of them. */
  readonly requestId: string;
  readonly keyId: string;
  readonly protocol: RequestKind;
  readonly mode: Mode;
  readonly model: string;
  readonly upstream: string;
  /** The request's tag, one of those of its key, and never empty; `null` without one. */
  readonly tag: string | null;
  /** The group in which its key was when it was sent; `null` without one. */
  readonly group: string | null;
  /** Milliseconds from arrival to dispatch. */
  readonly queuedMs: number;
  readonly price: Price;
  readonly hold: HoldRequest;
  /** The budgets of its key and of the key's group, in the order of `budgetOwners`; absent where there is none. */
  readonly budgets?: readonly BudgetTerms[];
}

/** What a record's settlement repeats of its beginning. */
export interface RecordBeginning extends Omit<OpenedRecord, 'requestId' | 'hold' | 'budgets'> {
  /** What was set aside of the balance, in nano-USD. */
  readonly holdNanos: number;
  /** The budgets in which it counts; absent where there is none. */
  readonly budgets?: readonly CountedBudget[];
}

/** The hold that a request asks of its key's balance and of its budgets, in nano-USD. */
interface HoldRequest {
  readonly nanos: number;
  /** The least that suffices: the whole hold in strict mode, any amount in soft mode. */
  readonly leastNanos: number;
}

/**
 * The result of a hold; amounts in nano-USD, `balanceNanos` is `null` for a key without a balance. The hold is `null` for a
 * key without both: nothing is set aside for it. The periods are those of the request's budgets, in their order, as they were
 * before the hold.
 */
export type Reservation =
  | {
      readonly granted: true;
      readonly holdNanos: number | null;
      /** After the hold. */
      readonly balanceNanos: number | null;
      readonly periods?: readonly StoredPeriod[];
    }
  | {
      readonly granted: false;
      readonly balanceNanos: number | null;
      readonly heldNanos: number;
      readonly periods?: readonly StoredPeriod[];
    };

/** One attempt at an upstream: what it cost the operator, whether or not the client pays for it. */
export interface Attempt {
  readonly upstream: string;
  /** The model's name there. */
  readonly model: string;
  readonly result: AttemptResult;
  /** When it began, in milliseconds after the request arrived; `null` in records that were written without it. */
  readonly startedMs: number | null;
  readonly durationMs: number;
  /** What the upstream counted, and so may bill; `null` when it reported nothing. */
  readonly usage: Usage | null;
  /** Why it failed, for the operator alone: it may name addresses. */
  readonly cause: string | null;
  /** What the upstream said of it. */
  readonly upstreamError: UpstreamError | null;
}

/** Why a request failed. */
export interface RecordedFailure {
  /** The code that the client got; `null` for one that had left. */
  readonly code: ErrorCode | null;
  /** For the operator alone; `null` where an attempt has the same words. */
  readonly cause: string | null;
}

/** The second half, written before the client sees the end. */
export interface SettledRecord {
  readonly requestId: string;
  /** How it was begun: a database may have forgotten it. */
  readonly begun: RecordBeginning;
  readonly outcome: Outcome;
  /** The upstream whose answer or failure the client got; `null` when nothing was sent. */
  readonly upstream: string | null;
  readonly attempts: readonly Attempt[];
  /** The HTTP status that the client got; 499 when it left before it got one. */
  readonly status: number;
  readonly usage: Usage | null;
  readonly usageSource: 'upstream' | 'counted' | 'none';
  /** The line of the price that was applied; `null` leaves the one that the record was begun with. */
  readonly price: Price | null;
  readonly chargeNanos: number;
  /** Milliseconds from arrival to the first text; `null` when none came. */
  readonly firstTextMs: number | null;
  readonly totalMs: number;
  /** `null` or absent for a finished answer. */
  readonly failure?: RecordedFailure | null;
  /** What it does with the claim of its request; absent for a request without one. */
  readonly claim?: ClaimEnd;
}

/** A whole consumption record, as the holder of its key may read it. */
export interface ConsumptionRecord extends Omit<OpenedRecord, 'hold' | 'budgets'> {
  /** When it arrived, in milliseconds since 1970. */
  readonly createdAtMs: number;
  /** `null` while the request runs, as are all fields that its end decides. */
  readonly outcome: Outcome | null;
  readonly status: number | null;
  readonly usage: Usage | null;
  readonly usageSource: SettledRecord['usageSource'] | null;
  readonly attempts: readonly Attempt[];
  readonly holdNanos: number;
  readonly chargeNanos: number;
  /** The part of its price that was not charged, because the account's sums could not take it; in nano-USD. */
  readonly unbookedNanos: number;
  readonly firstTextMs: number | null;
  readonly totalMs: number | null;
  /** From its arrival to its settlement, in milliseconds; `null` for one that was closed as lost, too. */
  readonly settledMs: number | null;
  /** `null` in records of earlier versions, too. */
  readonly failure?: RecordedFailure | null;
}

/**
 * A selection of records; times are milliseconds since 1970, `to` is not included. One that asks for what an end decides, as an
 * outcome, has no request in progress.
 */
export interface RecordFilter {
  readonly keyId?: string | undefined;
  readonly model?: string | undefined;
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly outcome?: Outcome | undefined;
  /** The upstream of the record: the one whose answer or failure the client got. */
  readonly upstream?: string | undefined;
  /** The group of the key when the request was sent; an empty one for the requests of keys without a group. */
  readonly group?: string | undefined;
  /** An empty one for the requests without a tag. */
  readonly tag?: string | undefined;
  /** The HTTP status that the client got. */
  readonly status?: number | undefined;
  /** A part of what the record says of a failure, as `saysCause` has it. */
  readonly cause?: string | undefined;
  /** From arrival to the end, in milliseconds; both included. */
  readonly minDurationMs?: number | undefined;
  readonly maxDurationMs?: number | undefined;
  /** The least charge, in nano-USD. */
  readonly minChargeNanos?: number | undefined;
  /** Only those with a failure: of the request, or of a call for it. It has others, too, whose calls need more words. */
  readonly hasFailed?: true | undefined;
}

/**
 * Whether a text is a part of what a record says of why its request, or a call for it, failed: the code that the client got,
 * or the outcome where it got none, the causes, and the result, code and words of each failed call. Upper and lower case
 * differ.
 */
export function saysCause({ failure, attempts, outcome }: ConsumptionRecord, text: string): boolean {
  const ofCalls = attempts.flatMap(({ result, cause, upstreamError }) =>
    result === 'ok' ? [] : [result, cause, upstreamError?.code, upstreamError?.message],
  );
  const code = failure?.code ?? (isUnanswered(outcome) ? outcome : null);
  return [code, failure?.cause, ...ofCalls].some((said) => said?.includes(text) === true);
}

/** A page of records, newest first; `next` is the cursor of the following page. */
export interface RecordPage {
  readonly records: readonly ConsumptionRecord[];
  readonly next: string | null;
}
