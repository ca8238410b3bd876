import { isRefusal } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { isPlainObject } from '../../shared/parse-json.ts';
import { maxStopChars, maxStops } from '../contract/chat-parameters.ts';
import type { Compatibility } from '../contract/compatibility.ts';
import { chatParts, messageReader } from '../contract/messages.ts';
import { nested, nestedByType, objectReader, StrippedNames } from '../contract/read-fields.ts';
import type { ReadContext } from '../contract/read-fields.ts';
import { registry } from '../contract/registry.ts';
import { readOutputCap } from '../contract/shared-parameters.ts';
import {
  emptyArray,
  invalidType,
  missingParameter,
  tooLong,
  tooManyItems,
} from '../contract/value-refusals.ts';
import type { TextRequest, TextTurn } from '../text.ts';

const readBody = objectReader(registry.chat, {
  messages: readMessages,
  stop: readStop,
  stream_options: nested(registry.streamOptions),
  response_format: nestedByType(registry.responseFormat),
});

const readMessageFields = messageReader(registry.message, registry.contentPart, {
  named: "'text'",
  types: chatParts,
});

/** Reads a parsed Chat Completions body into the neutral request, or returns the refusal for its first fault. */
export function readChatRequest(
  body: Readonly<Record<string, unknown>>,
  compatibility: Compatibility,
): TextRequest | Refusal {
  const context: ReadContext = { compatibility, stripped: new StrippedNames() };
  const values = readBody(body, '', context);
  if (isRefusal(values)) return values;
  const stream = values['stream'] === true;
  const options = values['stream_options'] as { include_usage?: boolean } | undefined;
  // Some clients send it with every request. A whole answer has its usage anyway.
  if (options !== undefined && !stream) context.stripped.add('stream_options');
  return {
    model: values['model'] as string,
    turns: values['messages'] as readonly TextTurn[],
    stream,
    includeUsage: options?.include_usage === true,
    maxOutputTokens: readOutputCap(values['max_completion_tokens'] ?? values['max_tokens']),
    stop: (values['stop'] ?? []) as readonly string[],
    promptCacheKey: (values['prompt_cache_key'] ?? null) as string | null,
    responses: null,
    shownCharge: { usageCost: compatibility.usageCost, chargeComment: compatibility.chargeComment },
    stripped: context.stripped.list(),
  };
}

/** Reads the stop sequences: each once, without empty ones, which end nothing. */
function readStop(stop: unknown, path: string): readonly string[] | Refusal {
  const list = typeof stop === 'string' ? [stop] : (stop as readonly unknown[]);
  const excess = tooManyItems(path, list.length, maxStops);
  if (excess !== null) return excess;
  const sequences = new Set<string>();
  for (const [index, sequence] of list.entries()) {
    const at = Array.isArray(stop) ? `${path}[${index}]` : path;
    if (typeof sequence !== 'string') return invalidType(at, 'a string', sequence);
    if (sequence.length > maxStopChars) return tooLong(at, maxStopChars, sequence.length);
    if (sequence !== '') sequences.add(sequence);
  }
  return [...sequences];
}

function readMessages(messages: unknown, path: string, context: ReadContext): readonly TextTurn[] | Refusal {
  const list = messages as readonly unknown[];
  if (list.length === 0) return emptyArray(path);
  const excess = tooManyItems(path, list.length);
  if (excess !== null) return excess;
  const turns: TextTurn[] = [];
  for (const [index, message] of list.entries()) {
    const turn = readMessage(message, `${path}[${index}]`, context);
    if (isRefusal(turn)) return turn;
    turns.push(turn);
  }
  return turns;
}

/** An assistant message that was a refusal has its text in `refusal`, and no content. */
function readMessage(message: unknown, path: string, context: ReadContext): TextTurn | Refusal {
  if (!isPlainObject(message)) return invalidType(path, 'an object', message);
  const values = readMessageFields(message, `${path}.`, context);
  if (isRefusal(values)) return values;
  const role = values['role'] as TextTurn['role'];
  const words = role === 'assistant' && values['refusal'] !== '' ? values['refusal'] : undefined;
  const text = values['content'] ?? words;
  if (typeof text === 'string') return { role, text };
  // An empty answer, as some clients send it back.
  if (role === 'assistant' && message['content'] === null) return { role, text: '' };
  return message['content'] === null
    ? invalidType(`${path}.content`, 'a string or an array of text parts', null)
    : missingParameter(`${path}.content`);
}
