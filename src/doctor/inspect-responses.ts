import { isPlainObject, parseJson } from '../shared/parse-json.ts';
import type { SseEvent } from '../protocol/sse.ts';
import { readEvents } from './inspect-chat.ts';
import { listNames, warnIf } from './report.ts';
import type { Check } from './report.ts';

type Json = Readonly<Record<string, unknown>>;

/** An event with its name and its type, which should be equal. */
interface TypedEvent {
  readonly name: string;
  readonly type: string;
  readonly frame: Json;
}

const terminal = new Set(['response.completed', 'response.incomplete', 'response.failed']);

const textDelta = 'response.output_text.delta';

/** What opens an item or part, and what has to close it; an answer without text, such as thoughts alone, may have none. */
const pairs = [
  ['response.output_item.added', 'response.output_item.done'],
  ['response.content_part.added', 'response.content_part.done'],
] as const;

/** The fields that every response object has, by the published types. */
const requiredKeys = [
  'id',
  'object',
  'created_at',
  'status',
  'model',
  'output',
  'error',
  'incomplete_details',
  'instructions',
  'metadata',
  'parallel_tool_calls',
  'temperature',
  'tool_choice',
  'tools',
  'top_p',
] as const;

/**
 * Finds what a Responses stream does against the order of typed events: response.created first, sequence numbers
 * without a gap, constant ids, and every item and part closed with the text of its deltas. `[DONE]` may follow.
 */
export function inspectResponsesStream(events: readonly SseEvent[]): readonly Check[] {
  const typed = events.filter(({ data }) => !data.startsWith('[DONE]')).flatMap(readTyped);
  if (typed.length === 0) return [];
  const types = typed.map(({ type }) => type);
  const last = types.findIndex((type) => terminal.has(type));
  const isFinished = last !== -1 && types[last] !== 'response.failed';
  const hasText = types.includes(textDelta);
  return [
    ...warnIf('first_event', types[0] !== 'response.created', 'the first event is not response.created'),
    ...warnIf(
      'sequence_numbers',
      !isConsecutive(typed),
      'the sequence numbers do not run from 0 without a gap',
    ),
    ...warnIf(
      'event_names',
      typed.some(({ name, type }) => name !== type),
      'an event: line differs from the type in its data',
    ),
    ...warnIf(
      'changing_id',
      idsOf(typed).some((ids) => ids.size > 1),
      'an id changes within the stream',
    ),
    ...warnIf(
      'unclosed_item',
      isFinished &&
        pairs.some(([open, close]) => {
          const opened = count(types, open);
          return opened !== count(types, close) || (hasText && opened === 0);
        }),
      'an item or a part is not opened and closed once',
    ),
    ...warnIf('text_differs', isFinished && !isSameText(typed), 'the closing texts differ from the deltas'),
    ...missingFields(
      typed.flatMap(({ frame }) => (isPlainObject(frame['response']) ? [frame['response']] : [])),
    ),
  ];
}

/** Whether a body has anything of the Responses API: a typed event, or a response object. */
export function isOfResponses(bytes: Uint8Array): boolean {
  const whole = parseJson(new TextDecoder().decode(bytes));
  if (isPlainObject(whole)) return whole['object'] === 'response';
  return readEvents(bytes)
    .flatMap(readTyped)
    .some(({ type }) => type === 'error' || type.startsWith('response.'));
}

/** Finds what a whole response object lacks. */
export function inspectResponsesBody(bytes: Uint8Array): readonly Check[] {
  const body = parseJson(new TextDecoder().decode(bytes));
  return isPlainObject(body) ? missingFields([body]) : [];
}

function missingFields(responses: readonly Json[]): readonly Check[] {
  const missing = requiredKeys.filter((key) => responses.some((response) => response[key] === undefined));
  return warnIf('missing_fields', missing.length > 0, `a response object lacks ${listNames(missing)}`);
}

function readTyped({ name, data }: SseEvent): readonly TypedEvent[] {
  const frame = parseJson(data);
  if (!isPlainObject(frame)) return [];
  const type = frame['type'];
  return [{ name, type: typeof type === 'string' ? type : '', frame }];
}

function isConsecutive(typed: readonly TypedEvent[]): boolean {
  return typed.every(({ frame }, index) => frame['sequence_number'] === index);
}

/** The ids of the response and of each output item. */
function idsOf(typed: readonly TypedEvent[]): readonly ReadonlySet<unknown>[] {
  const byOwner = new Map<string, Set<unknown>>();
  const note = (owner: string, id: unknown): void => {
    if (id !== undefined) byOwner.set(owner, (byOwner.get(owner) ?? new Set()).add(id));
  };
  for (const { frame } of typed) {
    const { response, item, output_index: index } = frame;
    if (isPlainObject(response)) note('response', response['id']);
    if (isPlainObject(item)) note(`item ${String(index)}`, item['id']);
    note(`item ${String(index)}`, frame['item_id']);
  }
  return [...byOwner.values()];
}

/** Whether the text of the deltas is also that of the closed parts and of the last response object. */
function isSameText(typed: readonly TypedEvent[]): boolean {
  const all = (type: string, key: string): string =>
    typed
      .filter((event) => event.type === type)
      .map(({ frame }) => (typeof frame[key] === 'string' ? frame[key] : ''))
      .join('');
  const said = all(textDelta, 'delta');
  const final = typed.find(({ type }) => terminal.has(type))?.frame['response'];
  return all('response.output_text.done', 'text') === said && textOf(final) === said;
}

function textOf(response: unknown): string {
  const output = isPlainObject(response) ? response['output'] : null;
  return listOf(output)
    .flatMap(({ content }) => listOf(content))
    .map((part) => (part['type'] === 'output_text' && typeof part['text'] === 'string' ? part['text'] : ''))
    .join('');
}

function listOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isPlainObject) : [];
}

function count(types: readonly string[], wanted: string): number {
  return types.filter((type) => type === wanted).length;
}
