import type { Failure, FailureKind } from '../text.ts';
import { readErrorBodyWords, readErrorWords, readSaidWords, showWords } from './error-words.ts';
import type { ErrorWords, SaidWords } from './error-words.ts';
import { failure } from './failures.ts';
import { readFinishReason } from './finish-reasons.ts';
import type { Sanitise } from './words/sanitise.ts';

/**
 * By what an error's words show what it means: by its names, by how the providers' own messages begin that say so, and by
 * phrases within a message. Each phrase has 16 letters or more: in a quotation of the request, so long a run is always
 * hidden, and a shorter one need not be.
 */
interface Signs {
  readonly codes: RegExp;
  readonly openings: RegExp;
  readonly phrases: RegExp;
}

/** The operator's key, account or location is not accepted. */
const operatorsFault: Signs = {
  codes:
    /^(?:API_KEY_INVALID|API_KEY_EXPIRED|(?:incorrect|invalid)_api_key|insufficient_quota|billing_(?:hard_limit|not_active)\w*|billing_error|account_?(?:deactivated|not_active)|authentication_error|permission_error|UNAUTHENTICATED|Arrearage)$/i,
  openings:
    /^(?:your credit balance is too low|API key (?:not valid|not found|expired)|(?:incorrect|invalid)[ _]api[ _]key|you exceeded your current quota|user location is not supported|(?:your|this) organization (?:must be verified|has been disabled)|your account is not active|billing hard limit)/i,
  phrases:
    /API key not valid\. please|(?:incorrect|invalid)[ _]api[ _]key[ _]provided|credit balance is too low|billing_(?:hard_limit|not_active)|plans? (?:and|&) billing details|insufficient_quota|exceeded your current quota|account_deactivated|account_? ?is not active|organization must be verified|location is not supported/i,
};

/** The provider refuses the text of the request. Names of finish reasons of blocked texts mean the same. */
const refusedText: Signs = {
  codes:
    /^(?:flagged_input|content_?filter(?:ed)?|invalid_prompt|moderation_blocked|content_policy_violation|ResponsibleAIPolicyViolation|data_?inspection_?failed)$/i,
  openings:
    /^(?:invalid prompt: your prompt was flagged|the response was filtered due to the prompt|output blocked by content filtering policy|content exists risk|content violates usage guidelines|the request was rejected because it was considered high risk|(?:input|output) data may contain inappropriate content|system detected potentially unsafe or sensitive content|your request was rejected (?:by|as a result of) (?:the|our) safety system)/i,
  phrases:
    /content_policy_violation|ResponsibleAIPolicyViolation|content (?:management|filtering) policy|data_?inspection_?failed|content exists risk|considered high risk|SAFETY_CHECK_TYPE_\w|\bviolat\w{0,8} (?:of )?(?:our |the |its |\w{1,20}'s )?(?:usage|content|safety|acceptable use) (?:polic|guideline)/i,
};

/** Phrases that mean: the provider has closed the operator's account, if for what earlier texts said. */
const accountClosed =
  /\baccount\b[^.]{0,60}? (?:was|is|has been)(?: \w{1,20})? (?:suspended|deactivated|disabled|terminated|banned)/i;

/** Phrases that mean: the text is too long for the model. */
const contextTooLong =
  /context_length_exceeded|maximum (?:context|prompt length|model length)|context (?:length|size|window|limit)|exceed_context_size|prompt is too long|input token count/i;

/** What a 404 says of a model, rather than of the path: its code or its message. */
const modelUnknown =
  /model_?not_?found|DeploymentNotFound|no such model|unknown model|no endpoints found|not_found_error model:|models?\b.{0,200}\b(?:not (?:found|exist|available|supported|loaded|deployed|served)|no longer)/is;

/** A kind of failure, and whether nothing but the words of a message says so. */
interface Verdict {
  readonly kind: FailureKind;
  readonly fromMessage?: true;
}

/** What an error status means. */
interface StatusMeaning {
  /** The kind of failure, or what finds it out from the words. */
  readonly kind: FailureKind | ((said: SaidWords) => Verdict);
  /** Set if its words decide what kind of failure it is. */
  readonly hasTellingBody?: true;
  /** Set if providers refuse a text with it, in words: most with 400, OpenRouter and xAI with 403. */
  readonly refusesText?: true;
  /** Set if it is about the gateway's own key or account. Clients never get its body, which may quote the key. */
  readonly isWithheld?: true;
  /** Set if it says no more than that something failed, where it is reported inside an answer. */
  readonly isVagueInside?: true;
}

const statuses: ReadonlyMap<number, StatusMeaning> = new Map<number, StatusMeaning>([
  [400, { kind: judgeRequestFault, hasTellingBody: true, refusesText: true }],
  [401, { kind: 'auth', isWithheld: true }],
  [402, { kind: 'auth', isWithheld: true }],
  [403, { kind: judgeForbidden, hasTellingBody: true, refusesText: true, isWithheld: true }],
  [404, { kind: judgeNotFound, hasTellingBody: true, isVagueInside: true }],
  [408, { kind: 'timed_out_itself' }],
  [413, { kind: judgeRequestFault, hasTellingBody: true }],
  [422, { kind: judgeRequestFault, hasTellingBody: true, refusesText: true }],
  [429, { kind: 'rate_limited' }],
  [451, { kind: 'unserved', hasTellingBody: true, refusesText: true, isVagueInside: true }],
  [503, { kind: 'unavailable' }],
  [504, { kind: 'timed_out_itself' }],
  [529, { kind: 'overloaded' }],
]);

/** The statuses about the gateway's own key or account. */
export const withheldStatuses = statusesThat('isWithheld');

/** The statuses whose words decide what kind of failure they are. */
export const statusesWithTellingBody = statusesThat('hasTellingBody');

function statusesThat(holds: 'isWithheld' | 'hasTellingBody'): ReadonlySet<number> {
  return new Set([...statuses].filter(([, meaning]) => meaning[holds]).map(([status]) => status));
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
  const verdict = judgeRefusal(said, refusesTextWith(status)) ?? judgeStatus(status, said);
  const detail = `status ${status}`;
  return failure(verdict.kind, { ...verdict, detail, retryAfterMs, cause: detail, upstreamError });
}

/**
 * Whether the upstream refuses the text of the request, which then no other provider may get: the names of the error say so
 * with any status, its message only where `wordsCount`. `null` if it does not.
 */
function judgeRefusal({ codes, opening, shown, name }: SaidWords, wordsCount: boolean): Verdict | null {
  const { openings, phrases } = refusedText;
  if (codes.some((code) => refusedText.codes.test(code) || readFinishReason(code) === 'content_filter'))
    return { kind: 'content_filtered' };
  if (!wordsCount) return null;
  // Not by every name of a blocked text: a firewall's page may say `Blocked`, and nothing else.
  const isSaid =
    openings.test(opening) ||
    refusedText.codes.test(name ?? '') ||
    (phrases.test(shown) && !accountClosed.test(shown));
  return isSaid ? { kind: 'content_filtered', fromMessage: true } : null;
}

function refusesTextWith(status: number): boolean {
  return statuses.get(status)?.refusesText === true;
}

function judgeStatus(status: number, said: SaidWords): Verdict {
  const kind = statuses.get(status)?.kind ?? (status >= 500 ? 'server_error' : 'unserved');
  return typeof kind === 'string' ? { kind } : kind(said);
}

function judgeNotFound({ codes, shown }: SaidWords): Verdict {
  return { kind: modelUnknown.test([...codes, shown].join(' ')) ? 'model_unknown' : 'unserved' };
}

/** A message that can't be compared with the request may refuse its text, which then must not go to another provider. */
function judgeForbidden({ codes, isHidden }: SaidWords): Verdict {
  return isHidden && !codes.some((code) => operatorsFault.codes.test(code))
    ? { kind: 'rejected', fromMessage: true }
    : { kind: 'auth' };
}

/** A fault of the request, unless the provider means the operator's key or account. */
function judgeRequestFault({ codes, opening, shown, name }: SaidWords): Verdict {
  const { openings, phrases } = operatorsFault;
  if (codes.some((code) => operatorsFault.codes.test(code))) return { kind: 'auth' };
  // A sentence that the request has, too, is hidden in what is shown.
  if (openings.test(opening))
    return openings.test(shown) ? { kind: 'auth' } : { kind: 'auth', fromMessage: true };
  if (phrases.test(shown) || operatorsFault.codes.test(name ?? ''))
    return { kind: 'auth', fromMessage: true };
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

/** The cause of a failure that the upstream reported under a good status. */
const errorInside = 'the upstream reported an error inside its answer';

/** Classifies an error that the upstream reported inside an answer. */
export function classifyReported(error: unknown, sanitise: Sanitise): Failure {
  const words = readErrorWords(error);
  const hasWords = words.codes.length > 0 || words.message !== null || words.status !== null;
  const upstreamError = hasWords ? showWords(words, null, sanitise) : null;
  const said = readSaidWords(words, upstreamError, sanitise);
  const status = statusMeantBy(said.codes, words);
  const wordsCount = status === null || refusesTextWith(status);
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
  if (status !== null && statuses.has(status) && statuses.get(status)?.isVagueInside !== true) return status;
  for (const code of codes) {
    const meant = statusByWord.find(([pattern]) => pattern.test(code));
    if (meant !== undefined) return meant[1];
  }
  return null;
}
