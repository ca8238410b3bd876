import { formatResetDuration } from '../../shared/duration.ts';
import { formatUsd } from '../../shared/money.ts';
import { isRetryable, statusOf } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { Limits, LimitDecision } from '../../domain/limits/limits.ts';
import type { TokenState } from '../../domain/limits/token-limits.ts';
import type { AnswerHead } from '../../pipeline/client-connection.ts';

/**
 * Statuses below 500 that client libraries retry, or may take for a fault of the server, so that a useless retry must be
 * forbidden in a header.
 */
const retriedStatuses = new Set([402, 408, 409, 429, 499]);

/** The longest `retry-after` that SDKs obey, in milliseconds; after a longer one they retry within seconds. */
const longestObeyedWaitMs = 60_000;

/** How many names of stripped parameters the header lists. */
const maxStrippedNames = 64;

/** Keeps caches from storing an answer, which is for one client alone. */
export const noStore = { 'cache-control': 'no-store' };

/** Keeps intermediaries also from buffering or recompressing an event stream, which would delay its text. */
export const streamHeaders = { 'cache-control': 'no-store, no-transform', 'x-accel-buffering': 'no' };

/** The headers of an answer, from its head. */
export function answerHeaders(head: AnswerHead): Record<string, string> {
  const headers: Record<string, string> = { 'content-type': head.contentType };
  Object.assign(headers, head.isStream ? streamHeaders : noStore);
  if (head.decision !== null && head.limits !== null) addLimits(headers, head.decision, head.limits);
  if (head.tokens !== null) addTokens(headers, head.tokens);
  if (head.balanceNanos !== null) headers['x-textgate-balance'] = formatUsd(head.balanceNanos);
  const chargeNanos = head.replayOf === null ? head.chargeNanos : 0;
  if (chargeNanos !== null) headers['x-textgate-charge'] = formatUsd(chargeNanos);
  if (head.replayOf !== null) Object.assign(headers, replayHeaders(head.replayOf));
  if (head.isUnkept && head.refusal === null) headers['x-textgate-replayable'] = 'false';
  if (head.queueMs > 0) headers['x-textgate-queue-ms'] = String(Math.ceil(head.queueMs));
  if (head.stripped.length > 0)
    headers['x-textgate-stripped'] = head.stripped.slice(0, maxStrippedNames).join(',');
  if (head.refusal !== null) Object.assign(headers, refusalHeaders(head.refusal));
  return headers;
}

/** An answer that is another request's: it costs nothing here, and the receipt is that one's. */
function replayHeaders(requestId: string): Record<string, string> {
  return { 'x-textgate-replayed': 'true', 'x-textgate-original-request': requestId };
}

/** What HTTP requires of a 401: the scheme in which a key is sent. Every key and token is a Bearer token. */
const challenge = 'Bearer realm="textgate"';

/** The headers of a refusal: when to retry the request, and whether to, or how to send a key. */
export function refusalHeaders({ code, retryAfterMs, limit }: Refusal): Record<string, string> {
  const headers: Record<string, string> = {};
  if (limit?.kind === 'tokens')
    addTokens(headers, { limit: limit.limit ?? 0, remaining: 0, resetMs: limit.retryAfterMs });
  if (retryAfterMs !== null) {
    headers['retry-after'] = String(Math.max(1, Math.ceil(retryAfterMs / 1_000)));
    headers['retry-after-ms'] = String(Math.ceil(retryAfterMs));
  }
  const status = statusOf(code);
  if (status === 401) headers['www-authenticate'] = challenge;
  const isRetried = status >= 500 || retriedStatuses.has(status);
  const isTooLong = retryAfterMs !== null && retryAfterMs > longestObeyedWaitMs;
  if (isRetried && (isTooLong || !isRetryable(code))) headers['x-should-retry'] = 'false';
  return headers;
}

/** A key's rate limits and their use, on every answer to an admitted or limited request. */
function addLimits(headers: Record<string, string>, decision: LimitDecision, limits: Limits): void {
  headers['x-ratelimit-limit-requests'] = String(limits.requestsPerMinute);
  headers['x-ratelimit-remaining-requests'] = String(decision.remainingStarts);
  headers['x-ratelimit-reset-requests'] = formatResetDuration(decision.resetMs);
  headers['x-textgate-concurrency-limit'] = String(limits.concurrency);
  headers['x-textgate-concurrency-in-flight'] = String(decision.inFlight);
}

/** The limit of tokens that is nearest, on the answers to a key that has one. */
function addTokens(
  headers: Record<string, string>,
  { limit, remaining, resetMs }: Omit<TokenState, 'words'>,
): void {
  headers['x-ratelimit-limit-tokens'] = String(limit);
  headers['x-ratelimit-remaining-tokens'] = String(remaining);
  headers['x-ratelimit-reset-tokens'] = formatResetDuration(resetMs);
}
