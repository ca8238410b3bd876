import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { isPlainObject } from '../../shared/parse-json.ts';

/** The wait suggested when an upstream limits us without saying for how long, in milliseconds. */
const defaultRetryAfterMs = 5_000;

/** Statuses about the gateway's own key or account at the upstream. Their bodies may quote those: no client gets to see one. */
export const withheldStatuses: ReadonlySet<number> = new Set([401, 402, 403]);

/** How providers say, in a 400 of their own, that the text is too long for the model. */
const contextTooLong =
  /context_length_exceeded|maximum (?:context|prompt length|model length)|context (?:length|size|window|limit)|exceed_context_size|prompt is too long|input token count/i;

/** How providers say, in a 400 as well, that it is the operator's key, account or place that they don't take. */
const operatorsFault =
  /API_KEY_INVALID|API key not valid|credit balance is too low|location is not supported/i;

/**
 * Turns an upstream's error status into the refusal that the client gets. Nothing of the upstream's body is
 * quoted, since it may hold its address or our key; it is only searched for the one cause a client can mend.
 */
export function readUpstreamError(status: number, body: string, retryAfterMs: number | null): Refusal {
  if (withheldStatuses.has(status)) return credentialsRefused();
  switch (status) {
    case 400:
    case 413:
    case 422:
      if (operatorsFault.test(body)) return credentialsRefused();
      return contextTooLong.test(body) ? contextExceeded() : refusedByProvider(status);
    case 408:
    case 504:
      return refuse('upstream_timeout', "The model's provider did not answer in time.");
    case 429:
      return limitedByProvider(retryAfterMs ?? defaultRetryAfterMs);
    case 503:
    case 529:
      return refuse('overloaded', "The model's provider is overloaded. Try again shortly.", {
        retryAfterMs: retryAfterMs ?? defaultRetryAfterMs,
      });
    default:
      return refuse('upstream_error', `The model's provider answered with status ${status}.`);
  }
}

/** How an error inside an answer says what an HTTP status would have said, in its code, type or status. */
const statusByWord: readonly (readonly [RegExp, number])[] = [
  [/rate.?limit|too_many_requests|resource_exhausted|insufficient_quota|throttl/i, 429],
  [/overload|unavailable/i, 503],
  [/timeout|timed_out|deadline_exceeded/i, 504],
  [/authenticat|permission|invalid_api_key/i, 401],
  [/invalid_request|bad_?request|invalid_argument/i, 400],
];

/** Statuses that tell a client or the operator more than that something failed. */
const tellingStatuses = new Set([...withheldStatuses, 400, 408, 413, 422, 429, 503, 504, 529]);

/** Turns an error that the upstream reported inside an answer into the refusal that the client gets. */
export function readReportedError(error: unknown): Refusal {
  const words = isPlainObject(error) ? [error['code'], error['type'], error['status']] : [];
  const message = isPlainObject(error) ? error['message'] : error;
  if (words.some((word) => typeof word === 'string' && contextTooLong.test(word))) return contextExceeded();
  for (const word of words) {
    const status = statusMeantBy(word);
    if (status !== null) return readUpstreamError(status, typeof message === 'string' ? message : '', null);
  }
  if (typeof message === 'string' && contextTooLong.test(message)) return contextExceeded();
  return refuse('upstream_error', "The model's provider reported an error while it was answering.");
}

function statusMeantBy(word: unknown): number | null {
  if (tellingStatuses.has(Number(word))) return Number(word);
  if (typeof word !== 'string') return null;
  return statusByWord.find(([pattern]) => pattern.test(word))?.[1] ?? null;
}

function credentialsRefused(): Refusal {
  return refuse(
    'upstream_auth',
    "The model's provider does not accept this service's credentials or account. The operator has to mend it.",
  );
}

function contextExceeded(): Refusal {
  return refuse(
    'context_length_exceeded',
    "The text is longer than the model's maximum context. Shorten the history and try again.",
  );
}

function refusedByProvider(status: number): Refusal {
  return refuse('invalid_value', `The model's provider refused the request (status ${status}).`);
}

function limitedByProvider(retryAfterMs: number): Refusal {
  return refuse(
    'upstream_rate_limited',
    "The model's provider is limiting this service's requests; your own key is within its limits.",
    { limit: { source: 'upstream', kind: 'rate', limit: null, retryAfterMs } },
  );
}
