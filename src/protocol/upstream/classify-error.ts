import type { Failure, FailureKind } from '../text.ts';
import { readErrorBodyWords, readErrorWords, showWords } from './error-words.ts';
import type { ErrorWords } from './error-words.ts';
import { failure } from './failures.ts';
import { isOperatorsCode, opensAsOperatorsFault, saysOperatorsFault } from './operators-fault.ts';
import { isRefusalCode, opensAsRefusal, refusesText, textRefusals } from './refused-text.ts';
import { readSaidWords } from './said-words.ts';
import type { SaidWords } from './said-words.ts';
import type { Sanitise } from './words/sanitise.ts';

/** Statuses about the gateway's own key or account. Clients never get their bodies, which may quote the key. */
export const withheldStatuses: ReadonlySet<number> = new Set([401, 402, 403]);

/** Phrases that mean: the text is too long for the model. */
const contextTooLong =
  /context_length_exceeded|maximum (?:context|prompt length|model length)|context (?:length|size|window|limit)|exceed_context_size|prompt is too long|input token count/i;

/** What a 404 says of a model, rather than of the path: its code or its message. */
const modelUnknown =
  /model_?not_?found|DeploymentNotFound|no such model|unknown model|no endpoints found|not_found_error model:|models?\b.{0,200}\b(?:not (?:found|exist|available|supported|loaded|deployed|served)|no longer)/is;

/** Statuses whose words decide what kind of failure they are. */
export const statusesWithTellingBody: ReadonlySet<number> = new Set([400, 403, 404, 413, 422, 451]);

/** A kind of failure, and whether nothing but the words of a message says so. */
interface Verdict {
  readonly kind: FailureKind;
  readonly fromMessage?: true;
}

/** Classifies an upstream's error status by its number and, for some statuses, by what its body says. */
export function classifyStatus(
  status: number,
  body: string,
  retryAfterMs: number | null,
  sanitise: Sanitise,
): Failure {
  const words = readErrorBodyWords(body);
  const upstreamError = showWords(words, status, sanitise);
  const said = readSaidWords(words, upstreamError, sanitise);
  const verdict = judgeRefusal(said, textRefusals.has(status)) ?? judgeStatus(status, said);
  const detail = `status ${status}`;
  return failure(verdict.kind, { ...verdict, detail, retryAfterMs, cause: detail, upstreamError });
}

/**
 * Whether the upstream refuses the text of the request: the names of the error say so with any status, its message only
 * where `wordsCount`. `null` if it does not.
 */
function judgeRefusal(said: SaidWords, wordsCount: boolean): Verdict | null {
  if (said.codes.some(isRefusalCode)) return { kind: 'content_filtered' };
  if (!wordsCount || !(opensAsRefusal(said.opening) || refusesText(said))) return null;
  return { kind: 'content_filtered', fromMessage: true };
}

function judgeStatus(status: number, said: SaidWords): Verdict {
  switch (status) {
    case 401:
    case 402:
      return { kind: 'auth' };
    case 403:
      return judgeForbidden(said);
    case 400:
    case 413:
    case 422:
      return judgeRequestFault(said);
    case 404:
      return {
        kind: modelUnknown.test([...said.codes, said.shown].join(' ')) ? 'model_unknown' : 'unserved',
      };
    case 408:
    case 504:
      return { kind: 'timed_out_itself' };
    case 429:
      return { kind: 'rate_limited' };
    case 503:
      return { kind: 'unavailable' };
    case 529:
      return { kind: 'overloaded' };
    default:
      return { kind: status >= 500 ? 'server_error' : 'unserved' };
  }
}

/** A message that can't be compared with the request may refuse its text, which then must not go to another provider. */
function judgeForbidden({ codes, isHidden }: SaidWords): Verdict {
  return isHidden && !codes.some(isOperatorsCode)
    ? { kind: 'rejected', fromMessage: true }
    : { kind: 'auth' };
}

/** A fault of the request, unless the provider means the operator's key or account. */
function judgeRequestFault(said: SaidWords): Verdict {
  const { codes, opening, shown } = said;
  if (codes.some(isOperatorsCode)) return { kind: 'auth' };
  // A sentence that the request has, too, is hidden in what is shown.
  if (opensAsOperatorsFault(opening))
    return opensAsOperatorsFault(shown) ? { kind: 'auth' } : { kind: 'auth', fromMessage: true };
  if (saysOperatorsFault(said)) return { kind: 'auth', fromMessage: true };
  if (codes.some((code) => contextTooLong.test(code))) return { kind: 'context_too_long' };
  if (contextTooLong.test(shown)) return { kind: 'context_too_long', fromMessage: true };
  return { kind: 'rejected' };
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
  const hasWords = words.codes.length > 0 || words.message !== null || words.status !== null;
  const upstreamError = hasWords ? showWords(words, null, sanitise) : null;
  const said = readSaidWords(words, upstreamError, sanitise);
  const status = statusMeantBy(said.codes, words);
  const wordsCount = status === null || textRefusals.has(status);
  const verdict = judgeRefusal(said, wordsCount) ?? judgeReported(status, said);
  const detail = status === null ? '' : `status ${status}`;
  return failure(verdict.kind, { ...verdict, detail, cause: errorInside, upstreamError });
}

function judgeReported(status: number | null, said: SaidWords): Verdict {
  if (said.codes.some((code) => contextTooLong.test(code))) return { kind: 'context_too_long' };
  if (status !== null) {
    const verdict = judgeStatus(status, said);
    // An upstream that is answering is not down, so a reported 503 means that it is overloaded.
    return verdict.kind === 'unavailable' ? { kind: 'overloaded' } : verdict;
  }
  if (contextTooLong.test(said.shown)) return { kind: 'context_too_long', fromMessage: true };
  return { kind: 'reported_error' };
}

function statusMeantBy(codes: readonly string[], { status }: ErrorWords): number | null {
  if (status !== null && tellingStatuses.has(status)) return status;
  for (const code of codes) {
    const meant = statusByWord.find(([pattern]) => pattern.test(code));
    if (meant !== undefined) return meant[1];
  }
  return null;
}
