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

/** The one good ending: the reason as unified by us and as the upstream wrote it, and the usage if it is known. */
export interface FinishedAnswer {
  readonly kind: 'finished';
  readonly reason: FinishReason;
  readonly rawReason: string;
  readonly usage: Usage | null;
}

/** The one bad ending. The usage seen so far is kept, since the operator was billed for it. */
export interface FailedAnswer {
  readonly kind: 'failed';
  readonly failure: Failure;
  readonly usage: Usage | null;
}

export type AnswerEnding = FinishedAnswer | FailedAnswer;

/**
 * What one read of an answer brings, as every upstream dialect is read and every client protocol is written: pieces of
 * text, none of them empty, and the ending once it has come. The order law: parts without an ending, then one with it,
 * then nothing. Usage has no place in time of its own in either client protocol, so it rides on the ending.
 */
export interface AnswerPart {
  readonly deltas: readonly string[];
  readonly ending: AnswerEnding | null;
}

/** Everything that can go wrong with an attempt at an upstream; `domain/failure.ts` says what follows from each. */
export type FailureKind =
  /** The connection could not be made, or a kept one was closed before it answered. */
  | 'unreachable'
  | 'stale'
  /** The connection broke in the middle of the answer. */
  | 'broken'
  | 'first_byte_timeout'
  | 'idle_timeout'
  | 'total_timeout'
  /** The upstream does not accept the gateway's own key or account. */
  | 'auth'
  | 'context_too_long'
  /** Another fault that the upstream finds in the request. */
  | 'rejected'
  | 'rate_limited'
  /** It asked for a pause that is not over, so nothing was sent. */
  | 'cooling'
  /** It says that it is full, which no fault of its own has to be the cause of. */
  | 'overloaded'
  /** A 503, which may mean anything between full and gone. */
  | 'unavailable'
  /** It gave up waiting for something of its own. */
  | 'timed_out_itself'
  /** Any other 3xx or 4xx: it has not got what was asked for. */
  | 'unserved'
  | 'server_error'
  /** An error inside an answer, of a kind that it does not tell. */
  | 'reported_error'
  /** The answer breaks the protocol. */
  | 'invalid'
  /** The answer ended without a finish reason. */
  | 'truncated';

/** What went wrong with an attempt, as it was classified where it was seen. */
export interface Failure {
  readonly kind: FailureKind;
  /** What the message for clients names of it, such as a status; without a quote of the upstream. May be empty. */
  readonly detail: string;
  /** The pause that the upstream asked for, in milliseconds; `null` without one. */
  readonly retryAfterMs: number | null;
  /** For the operator alone: an error's code and words, never a key. */
  readonly cause: string | null;
}

/** A request as upstreams get it. */
export interface UpstreamRequest {
  readonly turns: readonly TextTurn[];
  /** Whether the upstream is asked for a stream, whatever the client asked for. */
  readonly stream: boolean;
  /** The output cap in tokens that is sent; `null` for none. */
  readonly maxOutputTokens: number | null;
}

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
