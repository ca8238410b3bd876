import { isPlainObject, parseJson } from '../shared/parse-json.ts';
import { SseParser } from '../protocol/sse.ts';
import type { SseEvent } from '../protocol/sse.ts';
import { readFinishReason } from '../protocol/upstream/finish-reasons.ts';
import type { ReadAnswer } from './ask.ts';
import { listNames, warnIf } from './report.ts';
import type { Check } from './report.ts';

type Json = Readonly<Record<string, unknown>>;

/** The events of a stream's bytes, without its comments. */
export function readEvents(bytes: Uint8Array): readonly SseEvent[] {
  const parser = new SseParser();
  return [...parser.push(new TextDecoder().decode(bytes)), ...parser.end()];
}

/**
 * Finds what a Chat Completions stream does that the gateway's own streams never do, although the gateway can read it:
 * clients without a gateway may fail at it. What the gateway can't read is reported by its reader.
 */
export function inspectChatStream(events: readonly SseEvent[]): readonly Check[] {
  const end = events.findIndex(({ data }) => data.startsWith('[DONE]'));
  const answers = (end === -1 ? events : events.slice(0, end))
    .filter(({ name }) => name !== 'error')
    .map(({ data }) => parseJson(data))
    .filter(isPlainObject)
    .filter((chunk) => (chunk['error'] ?? null) === null);
  const choices = answers.flatMap(choicesOf);
  const deltas = choices.map(({ delta }) => delta).filter(isPlainObject);
  const ids = new Set(answers.map(({ id }) => id).filter((id) => typeof id === 'string' && id !== ''));
  return [
    ...warnIf(
      'no_choices',
      answers.some((chunk) => !Array.isArray(chunk['choices'])),
      'a chunk has no list of choices: some client libraries fail at it',
    ),
    ...warnIf(
      'no_role',
      deltas.length > 0 && !deltas.some(({ role }) => role === 'assistant'),
      "no chunk has the role assistant: openai's stream helper fails without it",
    ),
    ...warnIf(
      'content_list',
      deltas.some(({ content }) => Array.isArray(content)),
      'a content is a list of parts, not a string: many clients display it as [object Object]',
    ),
    ...warnIf(
      'text_after_finish',
      hasTextAfterFinish(choices),
      'text follows the first finish reason: clients that stop there lose it',
    ),
    ...warnIf('changing_id', ids.size > 1, `the chunks have ${ids.size} different ids`),
  ];
}

/** The first finish reason of an answer that is in no table; `null` if all are known. */
export function unknownFinishReason({ bytes, contentType }: ReadAnswer): string | null {
  const isStream = contentType.startsWith('text/event-stream');
  const data = isStream ? readEvents(bytes).map((event) => event.data) : [new TextDecoder().decode(bytes)];
  const reasons = data
    .map(parseJson)
    .filter(isPlainObject)
    .flatMap(choicesOf)
    .map((choice) => choice['finish_reason'])
    .filter((reason) => typeof reason === 'string');
  return (
    reasons.find((reason) => !silentReasons.has(reason) && readFinishReason(reason) === 'unknown') ?? null
  );
}

/** Finish reasons beside those of the table: none, and that of an error, which has a rule of its own. */
const silentReasons = new Set(['', 'error']);

function choicesOf({ choices }: Json): readonly Json[] {
  return Array.isArray(choices) ? choices.filter(isPlainObject) : [];
}

function hasTextAfterFinish(choices: readonly Json[]): boolean {
  const first = choices.findIndex((choice) => typeof choice['finish_reason'] === 'string');
  if (first === -1) return false;
  return choices.slice(first + 1).some(({ delta }) => isPlainObject(delta) && isText(delta['content']));
}

function isText(content: unknown): boolean {
  return typeof content === 'string' && content !== '';
}

/** The fields of a whole completion that the protocol requires. */
const requiredKeys = ['id', 'object', 'created', 'model', 'choices'] as const;

/** Finds what a whole completion lacks, or has in a form that clients do not expect. */
export function inspectChatBody(bytes: Uint8Array): readonly Check[] {
  const body = parseJson(new TextDecoder().decode(bytes));
  if (!isPlainObject(body)) return [];
  const [choice = {}] = choicesOf(body);
  const message = isPlainObject(choice['message']) ? choice['message'] : {};
  const missing = [
    ...requiredKeys.filter((key) => (body[key] ?? null) === null),
    ...(message['role'] === 'assistant' ? [] : ['message.role']),
  ];
  return [
    ...warnIf('missing_fields', missing.length > 0, `the answer lacks ${listNames(missing)}`),
    ...warnIf(
      'content_list',
      Array.isArray(message['content']),
      'the content is a list of parts, not a string',
    ),
  ];
}
