import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { isPlainObject } from '../../shared/parse-json.ts';
import type { Compatibility } from '../contract/compatibility.ts';
import { droppedItems, messageReader, responsesParts } from '../contract/messages.ts';
import { nested, nestedByType, objectReader, StrippedNames } from '../contract/read-fields.ts';
import type { FieldValues, ReadContext } from '../contract/read-fields.ts';
import { registry } from '../contract/registry.ts';
import { noLogprobs, readOutputCap } from '../contract/shared-parameters.ts';
import { invalidType, invalidValue, tooManyItems, unsupportedValue } from '../contract/value-refusals.ts';
import type { ResponsesExtras, TextRequest, TextTurn } from '../text.ts';

const readBody = objectReader(registry.responses, {
  input: readInput,
  include: readInclude,
  stream_options: nested(registry.responsesStreamOptions),
  text: nested(registry.text, { format: nestedByType(registry.textFormat) }),
});

const readMessageFields = messageReader(registry.inputMessage, registry.inputPart, {
  named: "'input_text' or 'output_text'",
  types: responsesParts,
});

/** Reads a parsed Responses body into the neutral request, or returns the refusal for its first fault. */
export function readResponsesRequest(
  body: Readonly<Record<string, unknown>>,
  compatibility: Compatibility,
): TextRequest | Refusal {
  const context: ReadContext = { compatibility, stripped: new StrippedNames() };
  const values = readBody(body, '', context);
  if (isRefusal(values)) return values;
  const history = values['input'] as readonly TextTurn[];
  const responses = readExtras(values, compatibility);
  const { instructions, maxOutputTokens, promptCacheKey } = responses;
  return {
    model: values['model'] as string,
    turns: instructions === null ? history : [{ role: 'system', text: instructions }, ...history],
    stream: values['stream'] === true,
    includeUsage: true,
    maxOutputTokens,
    stop: [],
    promptCacheKey,
    responses,
    shownCharge: { usageCost: compatibility.usageCost, chargeComment: compatibility.chargeComment },
    stripped: context.stripped.list(),
  };
}

/** The fields that the response object repeats, and how its stream ends. */
function readExtras(values: FieldValues, { responsesDone }: Compatibility): ResponsesExtras {
  return {
    instructions: (values['instructions'] ?? null) as string | null,
    maxOutputTokens: readOutputCap(values['max_output_tokens']),
    metadata: (values['metadata'] ?? {}) as Readonly<Record<string, string>>,
    user: (values['user'] ?? null) as string | null,
    safetyIdentifier: (values['safety_identifier'] ?? null) as string | null,
    promptCacheKey: (values['prompt_cache_key'] ?? null) as string | null,
    endsWithDone: responsesDone,
  };
}

/** Entries of `include` for details of content that this service never returns: dropping them loses nothing. */
const neutralInclude =
  /^(reasoning\.encrypted_content|message\.input_image\.image_url|[a-z_]+_call(_output)?\..+)$/;

/** Entries of `include` that are refused, because the client would miss the data. */
const refusedIncludes: ReadonlySet<string> = new Set(['message.output_text.logprobs']);

function readInclude(include: unknown, path: string): unknown {
  for (const [index, entry] of (include as readonly unknown[]).entries()) {
    if (typeof entry !== 'string') return invalidType(`${path}[${index}]`, 'a string', entry);
    if (refusedIncludes.has(entry)) return unsupportedValue(path, noLogprobs);
    if (!neutralInclude.test(entry))
      return invalidValue(`${path}[${index}]`, entry, ['reasoning.encrypted_content']);
  }
  return include;
}

function readInput(input: unknown, path: string, context: ReadContext): readonly TextTurn[] | Refusal {
  if (typeof input === 'string')
    return input === '' ? emptyInput(path, 'an empty string') : [{ role: 'user', text: input }];
  const items = input as readonly unknown[];
  const excess = tooManyItems(path, items.length);
  if (excess !== null) return excess;
  const turns: TextTurn[] = [];
  for (const [index, item] of items.entries()) {
    const turn = readItem(item, `${path}[${index}]`, context);
    if (isRefusal(turn)) return turn;
    if (turn !== null) turns.push(turn);
  }
  if (turns.length > 0) return turns;
  return emptyInput(path, items.length === 0 ? 'an empty array' : 'an array without a message');
}

/** Reasoning items are dropped, so a history of these alone is empty, too. */
function emptyInput(path: string, given: string): Refusal {
  const message = `Invalid '${path}': expected text, or an array with at least one message, but got ${given} instead.`;
  return refuse('empty_array', message, { param: path });
}

/** Reads one item of the history; `null` for an item without conversation text. */
function readItem(item: unknown, path: string, context: ReadContext): TextTurn | Refusal | null {
  if (!isPlainObject(item)) return invalidType(path, 'an object', item);
  const type =
    item['type'] ?? (item['role'] === undefined && item['id'] !== undefined ? reference : 'message');
  if (typeof type !== 'string') return invalidType(`${path}.type`, 'a string', type);
  if (type === reference) return unresolvableReference(path);
  if (droppedItems.has(type)) {
    context.stripped.add(`input[].${type}`);
    return null;
  }
  if (type !== 'message')
    return unsupportedValue(
      `${path}.type`,
      Object.hasOwn(responsesParts, type)
        ? 'A part with text belongs in the content of a message.'
        : "Only items of the type 'message' are available: tool calls and stored items are not.",
    );
  const values = readMessageFields(item, `${path}.`, context);
  if (isRefusal(values)) return values;
  return { role: values['role'] as TextTurn['role'], text: values['content'] as string };
}

const reference = 'item_reference';

/** By default some SDKs replay a turn by its id; the message names the setting that sends the text instead. */
function unresolvableReference(path: string): Refusal {
  return unsupportedValue(
    path,
    'Item references point to stored conversations, and this service stores none. Send the text itself: ' +
      'in the Vercel AI SDK set providerOptions.openai.store to false, or use its chat model.',
  );
}
