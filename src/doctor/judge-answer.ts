import { count } from '../shared/count.ts';
import { checkPath, explainAnswer, lookAtProxies } from '../domain/diagnosis/status-explanations.ts';
import { explainCoding } from '../domain/diagnosis/fault-explanations.ts';
import type { Failure, FailureKind, FinishedAnswer, ProtocolViolation } from '../protocol/text.ts';
import type { Asked, ReadAnswer } from './ask.ts';
import { inspectChatBody, inspectChatStream, readEvents, unknownFinishReason } from './inspect-chat.ts';
import { inspectResponsesBody, inspectResponsesStream } from './inspect-responses.ts';
import { wordsOf } from './explain.ts';
import { fault, ok, warning, warnIf } from './report.ts';
import type { Check } from './report.ts';
import { hideSecrets, quote } from './without-secrets.ts';

/** From which duration on, in milliseconds, text that all arrives at the end shows that something holds it back. */
const leastBufferedMs = 2_000;

/** The part of a stream's duration after which its first text counts as having arrived at the end. */
const endShare = 0.9;

/** The longest time, in milliseconds, in which text that was held back arrives: streamed text of a short answer takes longer. */
const mostSpreadMs = 150;

/** The fewest pieces of text that could have been sent one by one. */
const leastPieces = 4;

/** Judges a read answer: a check of the whole, and one for each rule that it breaks. */
export function judgeAnswer(id: string, read: ReadAnswer, asked: Asked): readonly Check[] {
  const { ending, totalMs } = read;
  const inspected = inspect(read, asked.dialect);
  if (ending.kind === 'failed') {
    const found = [...inspected, ...engineRules(read, asked), failureRule(read, ending.failure, asked)];
    const chars = read.deltas.join('').length;
    const detail =
      chars === 0 ? 'the answer fails before any text' : `the answer fails after ${chars} characters of text`;
    return [fault(id, detail, null, totalMs), ...found.map((rule) => ruleOf(id, rule))];
  }
  const found = [...inspected, ...engineRules(read, asked), ...finishedRules(read, asked)];
  return [mainCheck(id, read), ...found.map((rule) => ruleOf(id, rule))];
}

/** The finding of a rule under the check of the whole. */
function ruleOf(id: string, rule: Check): Check {
  return { ...rule, id: `${id}.${rule.id}` };
}

/** An answer without text is no fault of the protocol, but clients get nothing from it. */
function mainCheck(id: string, read: ReadAnswer): Check {
  const detail = describeAnswer(read);
  if (read.deltas.length > 0) return ok(id, detail, read.totalMs);
  const advice = hasThoughts(read)
    ? 'Nothing to change: the model thinks for longer than this test allows.'
    : 'Check that the model answers at all: no text came within the output cap of this test.';
  return warning(id, `${detail}, without any text`, advice, read.totalMs);
}

/** What the strict checkers find in an answer of the dialect for which they are written. */
function inspect({ bytes, contentType, terms }: ReadAnswer, dialect: string): readonly Check[] {
  const isStream = contentType.startsWith('text/event-stream');
  if (dialect === 'chat') return isStream ? inspectChatStream(readEvents(bytes)) : inspectChatBody(bytes);
  if (dialect !== 'responses') return [];
  if (isStream) return inspectResponsesStream(readEvents(bytes));
  return terms.streamAsked ? [] : inspectResponsesBody(bytes);
}

/** Violations that an answer may survive, and what is said of them. */
const survived = {
  duplicate_terminal: 'events follow the end of the answer: some client libraries append their text',
  inconsistent_end: 'the closing copy of the text, or the closing status, differs from what the stream said',
  excess_reasoning: 'the usage has more reasoning than output: only the output that it names is charged',
  skipped_content: 'a part of the answer has no known meaning and was skipped',
} as const satisfies Partial<Record<ProtocolViolation, string>>;

/** The violations that the gateway's reader noted and that an answer may survive. */
function engineRules(
  { violations, terms, contentType, ending }: ReadAnswer,
  { source }: Asked,
): readonly Check[] {
  const isRead =
    contentType.startsWith('text/event-stream') || contentType.includes('json') || contentType === '';
  const wanted = terms.streamAsked ? 'text/event-stream' : 'application/json';
  return [
    ...warnIf(
      'wrong_content_type',
      violations.has('wrong_content_type') && (isRead || ending.kind === 'finished'),
      `the content type is ${contentType === '' ? 'missing' : typeOf(hideSecrets(contentType, source.secrets().keys))}, not ${wanted}`,
    ),
    ...Object.entries(survived).flatMap(([rule, detail]) =>
      warnIf(rule, violations.has(rule as ProtocolViolation), detail),
    ),
  ];
}

/** The media type of a header, if it has the form of one. */
function typeOf(contentType: string): string {
  return /^[a-z0-9.+-]+\/[a-z0-9.+-]+/.exec(contentType)?.[0] ?? 'unreadable';
}

function finishedRules(read: ReadAnswer, { source }: Asked): readonly Check[] {
  const { violations, firstTextMs, totalMs, deltas } = read;
  const isLate =
    totalMs >= leastBufferedMs &&
    firstTextMs !== null &&
    firstTextMs >= totalMs * endShare &&
    totalMs - firstTextMs <= mostSpreadMs;
  const isBuffered = read.terms.streamAsked && isLate && deltas.length >= leastPieces && !hasThoughts(read);
  return [
    ...warnIf(
      'missing_done',
      violations.has('missing_done'),
      'the stream ends without data: [DONE]',
      'Nothing to change: the finish reason tells the gateway that the answer is complete.',
    ),
    ...warnIf(
      'missing_finish',
      violations.has('missing_finish'),
      'the answer has no finish reason; its end marker counts as one',
      `Nothing to change while finishReason: ${source.finishReason} is set.`,
    ),
    ...warnIf(
      'buffered',
      isBuffered,
      'all text of the stream arrives at its end',
      'Switch off buffering in the proxy before the server (in nginx: proxy_buffering off).',
    ),
  ];
}

/** Whether the model was thinking, by what it sent or by what it counted. */
function hasThoughts({ thoughtChars, ending: { usage } }: ReadAnswer): boolean {
  return thoughtChars > 0 || (usage?.reasoningTokens ?? 0) > 0;
}

/** The rule whose breach made an answer fail. */
function failureRule(read: ReadAnswer, failed: Failure, asked: Asked): Check {
  const { violations, contentType } = read;
  const { kind } = failed;
  if (contentType.includes('html'))
    return fault('wrong_content_type', 'a web page instead of an answer', adviseOnWebPage(asked));
  const explained = explainAnswer(failed);
  if (explained !== null) return fault(brokenRule(failed, violations), explained.cause, explained.advice);
  const unknown = asked.dialect === 'chat' ? unknownFinishReason(read) : null;
  if (unknown !== null)
    return fault(
      'unknown_finish_reason',
      `the finish reason ${quote(unknown, asked.source)} is not in the gateway's table`,
      'Report it to textgate: the answer fails, because it may not be complete.',
    );
  const coding = explainCoding(failed.detail);
  if (coding !== null) return fault('undecodable', coding.cause, coding.advice);
  if (kind === 'broken')
    return fault('broken', 'the connection breaks in the middle of the answer', lookAtProxies);
  if (timeouts.has(kind))
    return fault('timeout', 'the answer does not end within the time of this test', lookAtLoad);
  return fault('error_in_answer', `an error inside an answer with status 200${wordsOf(failed)}`, lookAtLog);
}

/** A base URL that has the list of models has the right path. */
function adviseOnWebPage({ source: { target }, hasList }: Asked): string {
  return hasList ? pathSeemsRight : checkPath({ method: 'POST', target });
}

const pathSeemsRight =
  'The list of models is at this URL: check the name of the model, the log of the server and the proxies before it.';

/** The deadlines of the test itself. */
const timeouts: ReadonlySet<FailureKind> = new Set(['first_byte_timeout', 'idle_timeout', 'total_timeout']);

const lookAtLoad = 'Check the load of the server, or allow more time with --timeout.';
const lookAtLog = 'Check the log of the server: the gateway ends such an answer with an error, too.';

/** The rule that an answer broke which was cut off or invalid. */
function brokenRule({ kind }: Failure, violations: ReadAnswer['violations']): string {
  if (kind === 'unfinished') return 'missing_finish';
  if (kind === 'truncated' || kind === 'empty') return 'cut_off';
  return rulesOfInvalid.find((rule) => violations.has(rule)) ?? 'invalid';
}

const rulesOfInvalid = ['bad_json', 'oversized_event'] as const;

/** How an answer went, in a line. */
function describeAnswer({ ending, terms, deltas, firstTextMs, totalMs }: ReadAnswer): string {
  const reason = ending.kind === 'finished' ? describeReason(ending) : 'no finish reason';
  if (!terms.streamAsked) return `${reason}, ${milliseconds(totalMs)}`;
  const first = firstTextMs === null ? '' : `text after ${milliseconds(firstTextMs)}, `;
  return `${reason}, ${first}${count(deltas.length, 'piece')}, ${milliseconds(totalMs)} in all`;
}

/** The upstream's own word for a finish reason, if it is a plain word. */
function describeReason({ reason, rawReason }: FinishedAnswer): string {
  if (rawReason === '') return 'no finish reason';
  return `finish reason ${/^[\w-]{1,40}$/.test(rawReason) ? rawReason : reason}`;
}

/** A duration, in whole milliseconds. */
function milliseconds(duration: number): string {
  return `${Math.round(duration)} ms`;
}
