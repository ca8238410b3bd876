import type { Asked, ReadAnswer } from './ask.ts';
import { inspectChatBody, inspectChatStream, readEvents } from './inspect-chat.ts';
import { inspectResponsesBody, inspectResponsesStream } from './inspect-responses.ts';
import { failureRule } from './judge-failure.ts';
import { fault, ok, warning } from './report.ts';
import type { Check } from './report.ts';
import { mendedRule } from './rules.ts';
import type { BrokenRule } from './rules.ts';
import { hideSecrets } from './without-secrets.ts';
import { describeAnswer } from './words.ts';

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
    return [fault(id, detail, null, totalMs), ...found.map((rule) => checkOf(id, rule))];
  }
  const found = [...inspected, ...engineRules(read, asked), ...finishedRules(read, asked)];
  return [mainCheck(id, read), ...found.map((rule) => checkOf(id, rule))];
}

function checkOf(id: string, { id: rule, status, detail, advice }: BrokenRule): Check {
  return { id: `${id}.${rule}`, status, detail, advice, ms: null };
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
function inspect({ bytes, contentType, terms }: ReadAnswer, dialect: string): readonly BrokenRule[] {
  const isStream = contentType.startsWith('text/event-stream');
  if (dialect === 'chat') return isStream ? inspectChatStream(readEvents(bytes)) : inspectChatBody(bytes);
  if (dialect !== 'responses') return [];
  if (isStream) return inspectResponsesStream(readEvents(bytes));
  return terms.streamAsked ? [] : inspectResponsesBody(bytes);
}

/** The violations that the gateway's reader noted and that an answer may survive. */
function engineRules(
  { violations, terms, contentType, ending }: ReadAnswer,
  { source }: Asked,
): readonly BrokenRule[] {
  const isRead =
    contentType.startsWith('text/event-stream') || contentType.includes('json') || contentType === '';
  const wanted = terms.streamAsked ? 'text/event-stream' : 'application/json';
  return [
    ...mendedRule(
      'wrong_content_type',
      violations.has('wrong_content_type') && (isRead || ending.kind === 'finished'),
      `the content type is ${contentType === '' ? 'missing' : typeOf(hideSecrets(contentType, source.secrets().keys))}, not ${wanted}`,
    ),
    ...mendedRule(
      'duplicate_terminal',
      violations.has('duplicate_terminal'),
      'events follow the end of the answer: some client libraries append their text',
    ),
    ...mendedRule(
      'inconsistent_end',
      violations.has('inconsistent_end'),
      'the closing copy of the text, or the closing status, differs from what the stream said',
    ),
    ...mendedRule(
      'excess_reasoning',
      violations.has('excess_reasoning'),
      'the usage has more reasoning than output: only the output that it names is charged',
    ),
    ...mendedRule(
      'skipped_content',
      violations.has('skipped_content'),
      'a part of the answer has no known meaning and was skipped',
    ),
  ];
}

/** The media type of a header, if it has the form of one. */
function typeOf(contentType: string): string {
  return /^[a-z0-9.+-]+\/[a-z0-9.+-]+/.exec(contentType)?.[0] ?? 'unreadable';
}

function finishedRules(read: ReadAnswer, { source }: Asked): readonly BrokenRule[] {
  const { violations, firstTextMs, totalMs, deltas } = read;
  const isLate =
    totalMs >= leastBufferedMs &&
    firstTextMs !== null &&
    firstTextMs >= totalMs * endShare &&
    totalMs - firstTextMs <= mostSpreadMs;
  const isBuffered = read.terms.streamAsked && isLate && deltas.length >= leastPieces && !hasThoughts(read);
  const rules: BrokenRule[] = [];
  if (violations.has('missing_done'))
    rules.push({
      id: 'missing_done',
      status: 'warning',
      detail: 'the stream ends without data: [DONE]',
      advice: 'Nothing to change: the finish reason tells the gateway that the answer is complete.',
    });
  if (violations.has('missing_finish'))
    rules.push({
      id: 'missing_finish',
      status: 'warning',
      detail: 'the answer has no finish reason; its end marker counts as one',
      advice: `Nothing to change while finishReason: ${source.finishReason} is set.`,
    });
  if (isBuffered)
    rules.push({
      id: 'buffered',
      status: 'warning',
      detail: 'all text of the stream arrives at its end',
      advice: 'Switch off buffering in the proxy before the server (in nginx: proxy_buffering off).',
    });
  return rules;
}

/** Whether the model was thinking, by what it sent or by what it counted. */
function hasThoughts({ thoughtChars, ending: { usage } }: ReadAnswer): boolean {
  return thoughtChars > 0 || (usage?.reasoningTokens ?? 0) > 0;
}
