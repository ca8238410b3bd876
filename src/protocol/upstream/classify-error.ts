import { isPlainObject } from '../../shared/parse-json.ts';
import type { Failure, FailureKind } from '../text.ts';
import { failure } from './failures.ts';

/** Statuses about the gateway's own key or account. Clients never get their bodies, which may quote the key. */
export const withheldStatuses: ReadonlySet<number> = new Set([401, 402, 403]);

/** Phrases in a provider's 400 that mean: the text is too long for the model. */
const contextTooLong =
  /context_length_exceeded|maximum (?:context|prompt length|model length)|context (?:length|size|window|limit)|exceed_context_size|prompt is too long|input token count/i;

/** Phrases in a provider's error that mean: it refuses this text, because of what the text says. */
const refusedText =
  /\bcontent_filter\b|content_policy_violation|ResponsibleAIPolicyViolation|content (?:management|filtering) policy|moderation_blocked|flagged_input|data_?inspection_?failed|content exists risk|considered high risk|SAFETY_CHECK_TYPE|violat\w+ (?:of )?(?:our |the |its |\w+'s )?(?:usage|content|safety|acceptable use) (?:polic|guideline)/i;

/** Phrases in a provider's 400 that mean: the operator's key, account or location is not accepted. */
const operatorsFault =
  /API_KEY_INVALID|API key not valid|credit balance is too low|location is not supported/i;

/** Statuses with which providers refuse a text: most with 400, OpenRouter and xAI with 403. */
const mayRefuseText: ReadonlySet<number> = new Set([400, 403, 422]);

/**
 * Classifies an upstream's error status. The body is only searched, never quoted, since it may hold the upstream's
 * address or our key.
 */
export function classifyStatus(status: number, body: string, retryAfterMs: number | null): Failure {
  const detail = `status ${status}`;
  const build = (kind: FailureKind): Failure => failure(kind, { detail, retryAfterMs, cause: detail });
  if (mayRefuseText.has(status) && refusedText.test(body)) return build('content_filtered');
  if (withheldStatuses.has(status)) return build('auth');
  switch (status) {
    case 400:
    case 413:
    case 422:
      if (operatorsFault.test(body)) return build('auth');
      return build(contextTooLong.test(body) ? 'context_too_long' : 'rejected');
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

/** Classifies an error that the upstream reported inside an answer. */
export function classifyReported(error: unknown): Failure {
  const words = isPlainObject(error) ? [error['code'], error['type'], error['status']] : [];
  const message = isPlainObject(error) ? error['message'] : error;
  if ([...words, message].some((word) => typeof word === 'string' && refusedText.test(word)))
    return failure('content_filtered');
  if (words.some((word) => typeof word === 'string' && contextTooLong.test(word)))
    return failure('context_too_long');
  for (const word of words) {
    const status = statusMeantBy(word);
    if (status !== null) return reportedAs(status, typeof message === 'string' ? message : '');
  }
  if (typeof message === 'string' && contextTooLong.test(message)) return failure('context_too_long');
  return failure('reported_error');
}

/** An upstream that is answering is not down, so a reported 503 means that it is overloaded. */
function reportedAs(status: number, message: string): Failure {
  const meant = { ...classifyStatus(status, message, null), cause: null };
  return meant.kind === 'unavailable' ? { ...meant, kind: 'overloaded' } : meant;
}

function statusMeantBy(word: unknown): number | null {
  if (tellingStatuses.has(Number(word))) return Number(word);
  if (typeof word !== 'string') return null;
  return statusByWord.find(([pattern]) => pattern.test(word))?.[1] ?? null;
}
