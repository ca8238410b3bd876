import { isRefusal } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { emptyArray, invalidType, isPlainObject, unsupportedValue } from '../checks.ts';
import { readParameters } from '../parameters.ts';
import { readContent, readRole } from '../text-parts.ts';
import type { PartTypes } from '../text-parts.ts';
import type { TextRequest, TextTurn } from '../text.ts';

const partTypes: PartTypes = { input_text: 'text', output_text: 'text', text: 'text', refusal: 'refusal' };

/** Reads a parsed Responses body into the neutral request, or says what is wrong with it. */
export function readResponsesRequest(body: unknown): TextRequest | Refusal {
  const read = readParameters('responses', body);
  if (isRefusal(read)) return read;
  const { values, stripped } = read;
  const history = readInput(values['input']);
  if (isRefusal(history)) return history;
  const instructions = (values['instructions'] ?? null) as string | null;
  const maxOutputTokens = (values['max_output_tokens'] ?? null) as number | null;
  return {
    model: values['model'] as string,
    turns: instructions === null ? history : [{ role: 'system', text: instructions }, ...history],
    stream: values['stream'] === true,
    includeUsage: true,
    maxOutputTokens,
    echo: { instructions, maxOutputTokens },
    stripped,
  };
}

function readInput(input: unknown): readonly TextTurn[] | Refusal {
  if (typeof input === 'string') return input === '' ? emptyArray('input') : [{ role: 'user', text: input }];
  if (!Array.isArray(input)) return invalidType('input', 'a string or an array of messages', input);
  if (input.length === 0) return emptyArray('input');
  const turns: TextTurn[] = [];
  for (const [index, item] of input.entries()) {
    const turn = readItem(item, `input[${index}]`);
    if (isRefusal(turn)) return turn;
    turns.push(turn);
  }
  return turns;
}

function readItem(item: unknown, path: string): TextTurn | Refusal {
  if (!isPlainObject(item)) return invalidType(path, 'an object', item);
  const type =
    item['type'] ?? (item['role'] === undefined && item['id'] !== undefined ? 'item_reference' : 'message');
  if (type === 'item_reference') return unresolvableReference(path);
  if (typeof type !== 'string') return invalidType(`${path}.type`, 'a string', type);
  if (type !== 'message')
    return unsupportedValue(
      `${path}.type`,
      'Only messages are available: tool calls and stored items are not.',
    );
  const role = readRole(item['role'], `${path}.role`);
  if (isRefusal(role)) return role;
  const text = readContent(item['content'], `${path}.content`, partTypes);
  return isRefusal(text) ? text : { role, text };
}

/** Some SDKs replay a turn by its id unless they are told that nothing is stored; the message tells how. */
function unresolvableReference(path: string): Refusal {
  return unsupportedValue(
    path,
    'Item references point to stored conversations, and this service stores none. Send the text itself: ' +
      'in the Vercel AI SDK set providerOptions.openai.store to false, or use its chat model.',
  );
}
