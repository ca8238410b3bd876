import { isPlainObject } from '../../shared/parse-json.ts';
import type { Answer } from './answer.ts';
import { notText } from './content.ts';
import type { Frame } from './dialect.ts';
import { toolCalled } from './failures.ts';

/** Output items without text that need no reaction from a client: thoughts, and tools that the provider runs itself. */
const silentItems = new Set([
  'reasoning',
  'compaction',
  'web_search_call',
  'file_search_call',
  'code_interpreter_call',
  'image_generation_call',
  'mcp_list_tools',
  'mcp_call',
  // Perplexity's
  'search_results',
  'fetch_url_results',
]);

/** Fails the answer for an item that is neither text nor silent: the client would have to react, and can't. */
export function readItem(item: unknown, answer: Answer): void {
  if (!isPlainObject(item)) return;
  const { type } = item;
  if (type === 'message' || type === 'reasoning') answer.noteContent();
  if (typeof type === 'string' && type !== 'message' && !silentItems.has(type)) answer.fail(toolCalled());
}

/** The text of all items of one type: a message's parts, or thoughts with their summaries. */
export function textOf(output: unknown, type: 'message' | 'reasoning', answer: Answer): string {
  if (typeof output === 'string' && type === 'message') return output;
  if (!Array.isArray(output)) return '';
  return output
    .filter((item) => isPlainObject(item) && item['type'] === type)
    .flatMap(({ content, summary }: Frame) => [content, summary])
    .flatMap((parts: unknown) => (Array.isArray(parts) ? parts : [parts ?? '']))
    .map((part: unknown) => textOfPart(part, answer))
    .join('');
}

/** The text of an item that is a message; `null` for any other. */
export function textOfMessage(item: unknown, answer: Answer): string | null {
  const isMessage = isPlainObject(item) && item['type'] === 'message';
  return isMessage ? textOf([item], 'message', answer) : null;
}

/** The text of a part; `null` for one of thoughts. */
export function textOfClosed(part: unknown, answer: Answer): string | null {
  const isText = isPlainObject(part) && /^(?:output_text|refusal)$/.test(String(part['type']));
  return isText ? textOfPart(part, answer) : null;
}

function textOfPart(part: unknown, answer: Answer): string {
  const text = isPlainObject(part) ? (part['text'] ?? part['refusal']) : part;
  if (typeof text === 'string') return text;
  answer.fail(notText());
  return '';
}
