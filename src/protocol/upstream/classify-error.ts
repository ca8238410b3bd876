import type { Failure, FailureKind, UpstreamError } from '../text.ts';
import { readErrorBodyWords, readErrorWords, showWords } from './error-words.ts';
import type { ErrorWords } from './error-words.ts';
import { failure } from './failures.ts';
import type { Sanitise } from './words/sanitise.ts';
import { refusesText, textRefusals } from './refused-text.ts';

/** Statuses about the gateway's own key or account. Clients never get their bodies, which may quote the key. */
export const withheldStatuses: ReadonlySet<number> = new Set([401, 402, 403]);

/** Phrases in a provider's 400 that mean: the text is too long for the model. */
const contextTooLong =
  /context_length_exceeded|maximum (?:context|prompt length|model length)|context (?:length|size|window|limit)|exceed_context_size|prompt is too long|input token count/i;

/**
 * Phrases in a provider's 400 that mean: the operator's key, account or location is not accepted. They are looked for in
 * sanitised words, so that a request that the upstream quotes can't pass for one.
 */
const operatorsFault =
  /API_KEY_INVALID|API key not valid|(?:incorrect|invalid)[ _]api[ _]key|credit balance|billing|insufficient_quota|exceeded your current quota|account_?(?:deactivated| is not active)|organization must be verified|location is not supported/i;

/** What a 404 says of a model, rather than of the path: its code or its message. */
const modelUnknown =
  /model_?not_?found|DeploymentNotFound|no such model|unknown model|no endpoints found|not_found_error model:|models?\b.{0,200}\b(?:not (?:found|exist|available|supported|loaded|deployed|served)|no longer)/is;

/** Statuses whose words decide what kind of failure they are. */
export const statusesWithTellingBody: ReadonlySet<number> = new Set([400, 403, 404, 413, 422]);

/** Classifies an upstream's error status by its number and, for some statuses, by its body. */
export function classifyStatus(
  status: number,
  body: string,
  retryAfterMs: number | null,
  sanitise: Sanitise,
): Failure {
  const words = readErrorBodyWords(body);
  const upstreamError = showWords(words, status, sanitise);
  // A request that the upstream quotes in the details of its error must not decide what kind of error it is.
  const isOperators = words.hint !== '' && operatorsFault.test(sanitise(words.hint) ?? '');
  return classifyWords(status, body, retryAfterMs, upstreamError, isOperators);
}

/** `body` is only searched, never quoted. */
function classifyWords(
  status: number,
  body: string,
  retryAfterMs: number | null,
  upstreamError: UpstreamError | null,
  isOperators = false,
): Failure {
  const detail = `status ${status}`;
  const build = (kind: FailureKind): Failure =>
    failure(kind, { detail, retryAfterMs, cause: detail, upstreamError });
  if (textRefusals.has(status) && refusesText(body)) return build('content_filtered');
  if (withheldStatuses.has(status)) return build('auth');
  const shown = `${upstreamError?.code} ${upstreamError?.message}`;
  switch (status) {
    case 400:
    case 413:
    case 422:
      if (isOperators || operatorsFault.test(shown)) return build('auth');
      return build(contextTooLong.test(body) ? 'context_too_long' : 'rejected');
    case 404:
      return build(modelUnknown.test(shown) ? 'model_unknown' : 'unserved');
    case 408:
    case 504:
      return build('timed_out_itself');
    case 429:
      return build('rate_limited');
    case 503:
      return build('unavailable');
    case 529:
      return build('overloaded');
    default:
      return build(status >= 500 ? 'server_error' : 'unserved');
  }
}

/** The HTTP status that the code, type or status of an error inside an answer corresponds to. */
const statusByWord: readonly (readonly [RegExp, number])[] = [
  [/rate.?limit|too_many_requests|resource_exhausted|insufficient_quota|throttl/i, 429],
  [/overload|unavailable/i, 503],
  [/timeout|timed_out|deadline_exceeded/i, 504],
  [/authenticat|permission|invalid_api_key/i, 401],
  [/invalid_request|bad_?request|invalid_argument/i, 400],
];

/** Statuses that mean more than an unspecified failure. */
const tellingStatuses = new Set([...withheldStatuses, 400, 408, 413, 422, 429, 503, 504, 529]);

/** The cause of a failure that the upstream reported under a good status. */
const errorInside = 'the upstream reported an error inside its answer';

/** Classifies an error that the upstream reported inside an answer. */
export function classifyReported(error: unknown, sanitise: Sanitise): Failure {
  const words = readErrorWords(error);
  const { codes, message } = words;
  const hasWords = codes.length > 0 || message !== null || words.status !== null;
  const upstreamError = hasWords ? showWords(words, null, sanitise) : null;
  const build = (kind: FailureKind): Failure => failure(kind, { cause: errorInside, upstreamError });
  if ([...codes, message].some((word) => word !== null && refusesText(word)))
    return build('content_filtered');
  if (codes.some((code) => contextTooLong.test(code))) return build('context_too_long');
  const status = statusMeantBy(words);
  if (status !== null) return reportedAs(status, message ?? '', upstreamError);
  return build(message !== null && contextTooLong.test(message) ? 'context_too_long' : 'reported_error');
}

/** An upstream that is answering is not down, so a reported 503 means that it is overloaded. */
function reportedAs(status: number, message: string, upstreamError: UpstreamError | null): Failure {
  const meant = classifyWords(status, message, null, upstreamError);
  const kind = meant.kind === 'unavailable' ? 'overloaded' : meant.kind;
  return { ...meant, kind, cause: errorInside };
}

function statusMeantBy({ codes, status }: ErrorWords): number | null {
  if (status !== null && tellingStatuses.has(status)) return status;
  for (const code of codes) {
    const meant = statusByWord.find(([pattern]) => pattern.test(code));
    if (meant !== undefined) return meant[1];
  }
  return null;
}
