import type { Refusal } from '../shared/errors.ts';

/** The two protocols that clients speak to us. */
export type Protocol = 'chat' | 'responses';

export type Role = 'system' | 'user' | 'assistant';

/** One turn of the conversation, reduced to what the service knows: who said which text. */
export interface TextTurn {
  readonly role: Role;
  readonly text: string;
}

/** What a Responses answer repeats of its request, and how its stream ends. */
export interface ResponsesExtras {
  readonly instructions: string | null;
  readonly maxOutputTokens: number | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly user: string | null;
  readonly safetyIdentifier: string | null;
  readonly promptCacheKey: string | null;
  /** Whether `data: [DONE]` follows the last event. */
  readonly endsWithDone: boolean;
}

/** A checked request of either protocol: all that any upstream dialect needs to know. */
export interface TextRequest {
  readonly model: string;
  readonly turns: readonly TextTurn[];
  readonly stream: boolean;
  /** Whether a chat stream shows its usage chunk to the client. */
  readonly includeUsage: boolean;
  /** The client's own output cap in tokens: a hint to the upstream, not a promise. */
  readonly maxOutputTokens: number | null;
  /** `null` for a chat request. */
  readonly responses: ResponsesExtras | null;
  /** Names of the parameters that were taken out, in document order. */
  readonly stripped: readonly string[];
}

/** Tokens of one answer and its question. */
export interface Usage {
  readonly inputTokens: number;
  /** The part of the input that was read from the provider's cache. */
  readonly cachedInputTokens: number;
  /** The part of the input that was written to it. */
  readonly cacheWriteTokens: number;
  readonly outputTokens: number;
  /** The part of the output that was thoughts. */
  readonly reasoningTokens: number;
  readonly totalTokens: number;
}

/** Why a whole answer ended. Anything else is a failure, and a reason is never invented. */
export type FinishReason = 'stop' | 'length' | 'content_filter';

interface DeltaEvent {
  readonly type: 'delta';
  readonly text: string;
}

/** The one good ending: the reason as unified by us and as the upstream wrote it, and the usage if it is known. */
export interface FinishEvent {
  readonly type: 'finish';
  readonly reason: FinishReason;
  readonly rawReason: string;
  readonly usage: Usage | null;
}

/** The one bad ending. */
export interface FailureEvent {
  readonly type: 'failure';
  readonly refusal: Refusal;
  readonly usage: Usage | null;
}

/**
 * An answer, as every upstream dialect is read and every client protocol is written.
 * The order law: any number of non-empty deltas, then exactly one finish or failure, then nothing.
 * Usage has no place in time of its own in either client protocol, so it rides on the ending.
 */
export type TextEvent = DeltaEvent | FinishEvent | FailureEvent;

/** How an upstream can break its protocol: each is counted, whether the answer survived it or not. */
export type ProtocolViolation =
  | 'missing_done'
  | 'missing_finish'
  | 'missing_usage'
  | 'implausible_usage'
  | 'bad_json'
  | 'duplicate_terminal'
  | 'oversized_event'
  | 'wrong_content_type';

/** Whether an answer is whole only with a finish reason, or also when its upstream marks the end without one. */
export type FinishReasonRule = 'required' | 'optional';
