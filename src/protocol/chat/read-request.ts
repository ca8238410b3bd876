import { isRefusal } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { emptyArray, invalidType, isBoolean, isPlainObject, unsupportedParameter } from '../checks.ts';
import { readParameters } from '../parameters.ts';
import { readContent, readRole } from '../text-parts.ts';
import type { PartTypes } from '../text-parts.ts';
import type { TextRequest, TextTurn } from '../text.ts';
import { refuse } from '../../shared/errors.ts';

const partTypes: PartTypes = { text: 'text', refusal: 'refusal' };

/** Keys of a message that carry more than text, and so can't be honoured when they hold anything. */
const nonTextKeys = ['tool_calls', 'function_call', 'audio', 'tool_call_id'] as const;

/** Reads a parsed Chat Completions body into the neutral request, or says what is wrong with it. */
export function readChatRequest(body: unknown): TextRequest | Refusal {
  const read = readParameters('chat', body);
  if (isRefusal(read)) return read;
  const { values, stripped } = read;
  const stream = values['stream'] === true;
  const includeUsage = readIncludeUsage(values['stream_options'], stream);
  if (isRefusal(includeUsage)) return includeUsage;
  const turns = readMessages(values['messages'] as readonly unknown[]);
  if (isRefusal(turns)) return turns;
  const cap = values['max_completion_tokens'] ?? values['max_tokens'] ?? null;
  return {
    model: values['model'] as string,
    turns,
    stream,
    includeUsage,
    maxOutputTokens: cap as number | null,
    echo: { instructions: null, maxOutputTokens: null },
    stripped,
  };
}

function readIncludeUsage(options: unknown, stream: boolean): boolean | Refusal {
  if (options === undefined) return false;
  if (!stream)
    return refuse('invalid_value', "The 'stream_options' parameter is only allowed when 'stream' is true.", {
      param: 'stream_options',
    });
  const wanted = (options as Record<string, unknown>)['include_usage'] ?? false;
  return isBoolean(wanted, 'stream_options.include_usage') ?? wanted === true;
}

function readMessages(messages: readonly unknown[]): readonly TextTurn[] | Refusal {
  if (messages.length === 0) return emptyArray('messages');
  const turns: TextTurn[] = [];
  for (const [index, message] of messages.entries()) {
    const turn = readMessage(message, `messages[${index}]`);
    if (isRefusal(turn)) return turn;
    turns.push(turn);
  }
  return turns;
}

function readMessage(message: unknown, path: string): TextTurn | Refusal {
  if (!isPlainObject(message)) return invalidType(path, 'an object', message);
  const role = readRole(message['role'], `${path}.role`);
  if (isRefusal(role)) return role;
  for (const key of nonTextKeys) {
    const value = message[key] ?? null;
    if (value !== null && !(Array.isArray(value) && value.length === 0))
      return unsupportedParameter(`${path}.${key}`, 'Only text messages are available.');
  }
  const refusalText = message['refusal'];
  const content = message['content'] ?? (typeof refusalText === 'string' ? refusalText : message['content']);
  const text = readContent(content, `${path}.content`, partTypes);
  return isRefusal(text) ? text : { role, text };
}
