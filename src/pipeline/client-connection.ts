import type { LimitDecision, Limits } from '../domain/limits/limits.ts';
import type { TokenState } from '../domain/limits/token-limits.ts';
import type { RequestHead } from '../domain/ports/telemetry.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Credentials } from './admission/authenticate.ts';

/** What the head of an answer says of its key and its request; `null` for what was not known yet when it was sent. */
export interface HeadFacts {
  readonly decision: LimitDecision | null;
  readonly limits: Limits | null;
  /** The key's limit of tokens; `null` also for a key without one. */
  readonly tokens: TokenState | null;
  /** The key's balance in nano-USD; `null` also for a key without one. */
  readonly balanceNanos: number | null;
  /** How long the request waited in queues, in milliseconds; 0 if it was in none. */
  readonly queueMs: number;
  /** The names of the stripped parameters. */
  readonly stripped: readonly string[];
  /** The request whose answer the client gets; `null` where that is its own. */
  readonly replayOf: string | null;
  /** Whether the client has named its request, and its answer is not kept: it can't be had again. */
  readonly isUnkept: boolean;
}

/** What the head of an answer says, before it is put into headers. */
export interface AnswerHead extends HeadFacts {
  readonly status: number;
  readonly contentType: string;
  readonly isStream: boolean;
  /** What was charged, in nano-USD; `null` where nothing was settled yet, as at the head of a stream. */
  readonly chargeNanos: number | null;
  readonly refusal: Refusal | null;
}

/** The client's end of a request, as the HTTP layer hands it to the pipeline. */
export interface ClientConnection extends Credentials {
  /** 32 hexadecimal digits; the client gets them as its request id. */
  readonly id: string;
  readonly head: RequestHead;
  /** The client's address as it is logged and traced; `null` where it is not. */
  readonly loggedAddress: string | null;
  /** The tag that the client gave its request, as it was sent; `undefined` without one. */
  readonly tag: string | undefined;
  /** The name that the client gave its request, so that it runs once however often it is sent; `undefined` without one. */
  readonly claim: string | undefined;
  /** How often a library of the client has sent its request before, as it was sent; `undefined` where it does not say it. */
  readonly retryCount: string | undefined;
  /** The id of the event that the client has got last of a stream that it has named; `undefined` without one. */
  readonly lastEventId: string | undefined;
  /** The header in which the client says how much the request may cost; it is not read. */
  readonly maxCost: string | undefined;
  /** A fault in the request's head that the HTTP layer found, such as a header sent twice. */
  readonly headFault: Refusal | null;
  /** Notes that this client presented a valid key, which protects its connection from eviction. */
  recognize(): void;
  /** The length of a body that has arrived whole and is still to be read, in bytes; 0 of any other. */
  readonly arrivedBytes: number;
  /** The whole body, within the size and time limits. */
  readBody(): Promise<Uint8Array | Refusal>;
  /** Calls back when the client disconnects before its answer is complete, or at once if it already has. */
  onGone(callback: () => void): void;
  /**
   * Calls back if the client closes its side of the connection after the head of its answer was sent. It may still read, so
   * it has not disconnected; whether it does shows when anything is sent.
   */
  onHalfClosed(callback: () => void): void;
  /** Sends a whole answer. This, `end` and `tearDown` resolve when the bytes are written, or can't be. */
  answer(head: AnswerHead, body: string): Promise<void>;
  /** Sends the head of a streamed answer. */
  open(head: AnswerHead): void;
  /** Sends a part; resolves when the client can take more, has disconnected, or `signal` was raised. */
  send(text: string, signal: AbortSignal): Promise<void> | undefined;
  /** Ends a stream with its last part. */
  end(text: string): Promise<void>;
  /** Sends the last part, then breaks the connection, so that the client can't take the answer for complete. */
  tearDown(text: string): Promise<void>;
}
