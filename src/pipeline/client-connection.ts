import type { LimitDecision, Limits } from '../domain/limits.ts';
import type { RequestHead } from '../domain/ports/telemetry.ts';
import type { Refusal } from '../shared/errors.ts';

/** What the head of an answer says of its key and its request; `null` where the request did not come so far. */
export interface HeadFacts {
  readonly standing: LimitDecision | null;
  readonly limits: Limits | null;
  /** The key's balance in nano-USD; `null` also for a key without one. */
  readonly balanceNanos: number | null;
  /** The parameters that were taken out. */
  readonly stripped: readonly string[];
}

/** What the head of an answer says, before it is put into headers. */
export interface AnswerHead extends HeadFacts {
  readonly status: number;
  readonly contentType: string;
  readonly isStream: boolean;
  readonly refusal: Refusal | null;
}

/** The client's end of a request: what transport hands to the pipeline. */
export interface ClientConnection {
  /** 32 hexadecimal digits; the client has been told them as its request id. */
  readonly id: string;
  readonly head: RequestHead;
  readonly authorization: string | undefined;
  /** A fault of the request's head that transport found, such as a header sent twice. */
  readonly headFault: Refusal | null;
  /** Notes that this client presented a valid key, which its connection is kept for. */
  recognize(): void;
  /** The whole body, within the size and time limits. */
  readBody(): Promise<Uint8Array | Refusal>;
  /** Calls back if the client leaves before its answer is whole, or has left already. */
  onGone(callback: () => void): void;
  /** Sends a whole answer. This and the other two endings resolve when the bytes are out, or can't get out. */
  answer(head: AnswerHead, body: string): Promise<void>;
  /** Sends the head of a streamed answer. */
  open(head: AnswerHead): void;
  /** Sends a part; resolves when the client can take more, has left, or `signal` was raised. */
  send(text: string, signal: AbortSignal): Promise<void> | undefined;
  /** Ends a stream with its last part. */
  end(text: string): Promise<void>;
  /** Sends the last part, then breaks the connection, so that nobody takes the answer for whole. */
  tearDown(text: string): Promise<void>;
}
