import type { UpstreamError } from '../shared/errors.ts';

export type { UpstreamError } from '../shared/errors.ts';

/** The two client protocols. */
export type Protocol = 'chat' | 'responses';

export type Role = 'system' | 'user' | 'assistant';

/** One turn of the conversation, reduced to its role and text. */
export interface TextTurn {
  readonly role: Role;
  readonly text: string;
}

/** The request fields that a Responses answer repeats, and how its stream ends. */
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

/** Where an answer shows its charge beside the header that whole answers have. */
export interface ShownCharge {
  /** As `cost` in the usage object, as OpenRouter has it: strict clients may refuse the field. */
  readonly usageCost: boolean;
  /** In a comment before the end of a stream. */
  readonly chargeComment: boolean;
}

/** A checked request of either protocol, with all fields that an upstream dialect needs. */
export interface TextRequest {
  readonly model: string;
  readonly turns: readonly TextTurn[];
  readonly stream: boolean;
  /** Whether a chat stream shows its usage chunk to the client. */
  readonly includeUsage: boolean;
  /** The client's own output cap in tokens: a hint to the upstream, not a promise. */
  readonly maxOutputTokens: number | null;
  /** The texts before which the answer ends, each once; empty without any. */
  readonly stop: readonly string[];
  /** What the client says of the prompt's beginning: that requests with the same one share it. Never sent upstream. */
  readonly promptCacheKey: string | null;
  /** `null` for a chat request. */
  readonly responses: ResponsesExtras | null;
  readonly shownCharge: ShownCharge;
  /** The names of the stripped parameters, in document order. */
  readonly stripped: readonly string[];
}

/** The tokens of one request and its answer. */
export interface Usage {
  readonly inputTokens: number;
  /** The part of the input that was read from the provider's cache. */
  readonly cachedInputTokens: number;
  /** The part of the input that was written to the provider's cache. */
  readonly cacheWriteTokens: number;
  readonly outputTokens: number;
  /** The part of the output that is thoughts. */
  readonly reasoningTokens: number;
  readonly totalTokens: number;
}

/** Why a complete answer ended. Any other end is a failure; a reason is never invented. */
export type FinishReason = 'stop' | 'length' | 'content_filter';

/** The one good ending: the unified reason, the upstream's own word for it, and the usage if it is known. */
export interface FinishedAnswer {
  readonly kind: 'finished';
  readonly reason: FinishReason;
  readonly rawReason: string;
  readonly usage: Usage | null;
}

/** The one bad ending. The usage reported so far is kept, since the operator was billed for it. */
interface FailedAnswer {
  readonly kind: 'failed';
  readonly failure: Failure;
  readonly usage: Usage | null;
}

export type AnswerEnding = FinishedAnswer | FailedAnswer;

/**
 * One part of an answer, the neutral form between upstream dialects and client protocols: non-empty pieces of text, and
 * the ending once it is known. The order law: parts without an ending, then one with it, then nothing. Neither client
 * protocol fixes when usage is sent, so the ending carries it.
 */
export interface AnswerPart {
  readonly deltas: readonly string[];
  readonly ending: AnswerEnding | null;
}

/** How a call can fail below the protocol. */
export type ConnectionFault =
  /** The connection could not be made. */
  | 'unreachable'
  /** The connection was made, and closed without an answer: the server may have failed at this request. */
  | 'unanswered'
  /** A kept connection was closed before the upstream answered: the request may be sent once more. */
  | 'stale'
  /** The headers of the answer are larger than what is read of them. */
  | 'oversized_head'
  /** The body of the answer is compressed, and can't be decoded. */
  | 'undecodable'
  /** The body ended before its compressed data did. */
  | 'cut_coding'
  /** The connection broke in the middle of the answer. */
  | 'broken'
  | 'first_byte_timeout'
  /** The answer may have begun, but its first text did not come in time. */
  | 'first_text_timeout'
  | 'idle_timeout'
  | 'total_timeout'
  /** The total time is over, and what came of the answer waits for a client that does not read it. */
  | 'unread';

/** Every kind of failure of an attempt at an upstream; `domain/upstreams/failure.ts` has the consequences of each. */
export type FailureKind =
  | ConnectionFault
  /** The upstream does not accept the gateway's own key or account. */
  | 'auth'
  | 'context_too_long'
  /** The upstream refuses the text because of what it says. */
  | 'content_filtered'
  /** The upstream found another fault in the request. */
  | 'rejected'
  /** The upstream does not know the model. */
  | 'model_unknown'
  | 'rate_limited'
  /** The upstream asked for a pause that has not ended, so nothing was sent. */
  | 'cooling'
  /** The upstream reports that it is at capacity, which need not be a fault. */
  | 'overloaded'
  /** A 503, which may mean anything from at capacity to down. */
  | 'unavailable'
  /** The upstream reported a timeout of its own. */
  | 'timed_out_itself'
  /** Any other 3xx or 4xx: the upstream does not serve what was requested. */
  | 'unserved'
  | 'server_error'
  /** An error inside an answer, without a known code. */
  | 'reported_error'
  /** The answer breaks the protocol. */
  | 'invalid'
  /** The answer ended without a finish reason and without an end marker. */
  | 'truncated'
  /** The answer has text and an end marker, but no finish reason. */
  | 'unfinished'
  /** The answer ended before anything was said. */
  | 'empty';

/** A failed attempt, classified where the failure was detected. */
export interface Failure {
  readonly kind: FailureKind;
  /** What the client's message names for some kinds, such as a status: no words of the upstream; empty for none. */
  readonly detail: string;
  /** The pause that the upstream asked for, in milliseconds; `null` without one. */
  readonly retryAfterMs: number | null;
  /**
   * What happened, in a sentence for the operator alone: it may have the call's address, but no key and no words of the
   * upstream; `null` where the kind says it all.
   */
  readonly cause: string | null;
  /** What the upstream said of it; `null` if it said nothing. Clients get it only if their request was at fault. */
  readonly upstreamError: UpstreamError | null;
  /**
   * Set if only the words of the upstream's message say that the failure is of this kind. They may quote the request, so
   * they count neither for nor against the upstream's health.
   */
  readonly fromMessage?: true;
}

/** A request as it is sent upstream. */
export interface UpstreamRequest {
  readonly turns: readonly TextTurn[];
  /** Whether a stream is requested from the upstream, independently of the client's choice. */
  readonly stream: boolean;
  /** The output cap to send, in tokens; `null` for none. */
  readonly maxOutputTokens: number | null;
  /** The stop sequences to send; empty for none. */
  readonly stop: readonly string[];
}

/** The ways in which an upstream can break its protocol. Each is counted, even if the answer could still be used. */
export type ProtocolViolation =
  | 'missing_done'
  | 'missing_finish'
  | 'missing_usage'
  | 'implausible_usage'
  /** The usage has more reasoning than output, and no total shows that it is beside the output: the output alone is charged. */
  | 'excess_reasoning'
  | 'bad_json'
  | 'duplicate_terminal'
  /** Something of an answer that has no known meaning was skipped. */
  | 'skipped_content'
  /** An answer's closing copy of its text, or its closing status, is not what its stream said. */
  | 'inconsistent_end'
  /** A complete answer has no text, as where all of it was reasoning. */
  | 'empty_answer'
  | 'oversized_event'
  | 'wrong_content_type';

/** Whether an answer is complete only with a finish reason, or also when its upstream marks the end without one. */
export type FinishReasonRule = 'required' | 'optional';
