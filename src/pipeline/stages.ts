import type { Refusal } from '../shared/errors.ts';
import type { TextRequest } from '../protocol/text.ts';
import type { ApiKey } from '../domain/keys/api-key.ts';
import type { Need } from '../domain/budgets/refusal.ts';
import type { OpenedRecord, RecordBeginning, Reservation } from '../domain/money/consumption.ts';
import type { Group } from '../domain/limits/groups.ts';
import type { LimitDecision, Limits } from '../domain/limits/limits.ts';
import type { Price } from '../domain/money/pricing.ts';
import type { OfferedModel, Route } from '../domain/routing.ts';
import type { TokenState } from '../domain/limits/token-limits.ts';
import type { AnswerSource } from './claims/claimed-run.ts';
import type { AttemptLog } from './attempts/attempt-log.ts';
import type { ReceivedAnswer } from './attempts/received-answer.ts';

/**
 * The stages of a request. Each stage takes the record of an earlier one and adds to it, so a field exists exactly when its
 * stage was reached; logs, views and charges are read from the last record.
 */
export type Stage =
  | { readonly stage: 'arrived' }
  | Identified
  | Joined
  | Limited
  | Admitted
  | Asked
  | Routed
  | Dispatched
  | Recorded;

/** The key is known. */
export interface Identified {
  readonly stage: 'identified';
  readonly key: ApiKey;
}

/** The client gets the answer of another request, which it has named before. */
interface Joined extends Omit<Identified, 'stage'> {
  readonly stage: 'joined';
  readonly asked: AnswerSource;
  /** The other request. */
  readonly requestId: string;
}

/** What the key's limits decided. */
export interface Admission {
  readonly limits: Limits;
  readonly decision: LimitDecision;
  /** When the decision was made, on the monotonic clock. */
  readonly admittedMs: number;
  /** The limit of tokens that is nearest, as it was then; `null` for a key without one. */
  readonly tokens: TokenState | null;
  /** How long it took until there was a slot or none, in milliseconds, with the time to ask a shared database. */
  readonly limiterMs: number;
  /** How long the request waited in the queue for a slot, in milliseconds; 0 if it did not wait. */
  readonly slotWaitMs: number;
  /** The group of the key; `null` without one. */
  readonly group: Group | null;
  /** One of the key's tags; `null` without one. */
  readonly tag: string | null;
  /** What it asks for, where that was read before it was admitted; `null` where it is read now, also after a wait. */
  readonly work: TextWork | null;
  /** Its record, where that was begun, or refused, with its slot; `null` where it is begun later. */
  readonly begun: Begun | null;
}

/** A record that was begun, or refused, with the slot of its request. */
interface Begun {
  readonly opening: Opening;
  readonly reservation: Reservation;
}

/** A request that was read before it was admitted, and the record that may be begun with its slot. */
export interface Prepared {
  readonly work: TextWork;
  /** `null` where the request has to wait for more than a slot. */
  readonly opening: Opening | null;
}

/** A record as it is to be begun, and what its hold is asked for. */
export interface Opening {
  readonly record: OpenedRecord;
  /** What its hold is asked for, as a refusal says it. */
  readonly need: () => Need;
}

/** Refused by a limit of the key, or by a change while the request waited for a slot. */
export interface Limited extends Omit<Admitted, 'stage'> {
  readonly stage: 'limited';
  readonly refusal: Refusal;
}

/** The request has a slot and counts as a start. */
export interface Admitted extends Omit<Identified, 'stage'> {
  readonly stage: 'admitted';
  readonly admission: Admission;
}

/** The body is read and valid. */
interface Asked extends Omit<Admitted, 'stage'> {
  readonly stage: 'asked';
  readonly request: TextRequest;
}

/** The model exists, and the key may use it. */
export interface Routed extends Omit<Admitted, 'stage'> {
  readonly stage: 'routed';
  readonly work: TextWork;
}

/** A request for text, and the part of its answer that has arrived. */
export interface TextWork {
  readonly kind: 'text';
  readonly request: TextRequest;
  readonly model: OfferedModel;
  /** In the order in which they are tried. */
  readonly routes: readonly Route[];
  readonly received: ReceivedAnswer;
  /** The most tokens that a request with a ceiling of costs is charged for, whatever is counted; `null` without one. */
  readonly ceiling: TokenCeiling | null;
}

/** The most tokens of a request with a ceiling of costs: the ceiling pays for these. */
export interface TokenCeiling {
  readonly inputTokens: number;
  /** `Infinity` if output costs nothing. */
  readonly outputTokens: number;
}

/** A request that is passed on verbatim. */
export interface PassthroughWork {
  readonly kind: 'passthrough';
  readonly path: string;
  /** The upstream's configured name. */
  readonly upstream: string;
  readonly price: Price;
}

/** The request is being sent: its record is being written, and its upstream may have been called. */
export interface Dispatched extends Omit<Admitted, 'stage'> {
  readonly stage: 'dispatched';
  readonly work: TextWork | PassthroughWork;
  /** On the monotonic clock. */
  readonly dispatchedMs: number;
  readonly attempts: AttemptLog;
}

/** The record is begun and the hold taken, so the request must be settled, and bytes may be sent. */
export interface Recorded extends Omit<Dispatched, 'stage'> {
  readonly stage: 'recorded';
  readonly begun: RecordBeginning;
  readonly reservation: Extract<Reservation, { readonly granted: true }>;
}
