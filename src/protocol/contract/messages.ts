import { isRefusal } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { isPlainObject } from '../../shared/parse-json.ts';
import type { Role } from '../text.ts';
import { objectReader } from './read-fields.ts';
import type { FieldSet, ObjectReader, ReadContext } from './read-fields.ts';
import { forward, refused, refusedUnless, required, rules, strip } from './rule.ts';
import type { Rule } from './rule.ts';
import { noTools, textOnly } from './shared-parameters.ts';
import {
  emptyArray,
  invalidType,
  invalidValue,
  missingParameter,
  tooManyItems,
  unsupportedValue,
} from './value-refusals.ts';
import { anything, array, arrayOf, either, object, string } from './value-type.ts';

const textContent = either(string, arrayOf('text parts'));

/** The fields of a chat message. */
export const messageFields: readonly Rule[] = rules(
  ['role', string, required, 'system, developer, user or assistant'],
  ['content', textContent, forward, 'text, or text parts; `null` of an assistant is an empty text'],
  ['refusal', string, forward, 'stands in for a missing content'],
  ['name', string, strip, 'never passed on'],
  ['tool_calls', array, refusedUnless([[]], noTools), 'an empty list is replayed by SDKs'],
  ['function_call', object, refused(noTools), 'no tools'],
  ['tool_call_id', string, refused(noTools), 'no tools'],
  ['audio', object, refused(textOnly), 'text only'],
  [
    'annotations reasoning_content reasoning reasoning_details reasoning_signature thinking_blocks provider_specific_fields prefix partial id created phase status metadata cache_control',
    anything,
    strip,
    'replayed by apps; carries no text of the conversation',
  ],
);

/** The fields of a message among the input items of a Responses request. */
export const inputMessageFields: readonly Rule[] = rules(
  ['role', string, required, 'system, developer, user or assistant'],
  ['content', textContent, required, 'text, or text parts'],
  ['type', string, forward, 'message'],
  ['id status phase', anything, strip, 'replayed by SDKs; nothing is stored'],
);

const textPartFields: readonly Rule[] = rules(
  ['type', string, required, 'the kind of the part'],
  ['text refusal', string, forward, 'the text'],
);

/** The fields of a content part of a chat message. */
export const contentPartFields: readonly Rule[] = [
  ...textPartFields,
  ...rules(
    ['cache_control prompt_cache_breakpoint', anything, strip, 'caching is the upstream’s own'],
    ['annotations citations', anything, strip, 'replayed by apps; carries no text of the conversation'],
  ),
];

/** The fields of a content part of an input item. */
export const inputPartFields: readonly Rule[] = [
  ...textPartFields,
  ...rules(
    ['annotations logprobs', anything, strip, 'replayed by SDKs; carries no text of the conversation'],
    ['cache_control prompt_cache_breakpoint', anything, strip, 'caching is the upstream’s own'],
  ),
];

/** The field of a content part that has its text, or that the part is dropped. */
type PartPolicy = 'text' | 'refusal' | 'drop';

/** Content parts of a chat message. Any other type is refused. */
export const chatParts: Readonly<Record<string, PartPolicy>> = {
  text: 'text',
  refusal: 'refusal',
  thinking: 'drop',
  redacted_thinking: 'drop',
  reasoning: 'drop',
};

/** Content parts of a Responses message. Any other type is refused. */
export const responsesParts: Readonly<Record<string, PartPolicy>> = {
  input_text: 'text',
  output_text: 'text',
  text: 'text',
  refusal: 'refusal',
  reasoning_text: 'drop',
  summary_text: 'drop',
};

/** Input items that are dropped: thoughts of an earlier answer are not part of the conversation's text. */
export const droppedItems: ReadonlySet<string> = new Set(['reasoning']);

/** The names under which dropped parts and items are reported. */
export const droppedNames: readonly string[] = [
  ...droppedTypes(chatParts).map((type) => `messages[].content[].${type}`),
  ...droppedTypes(responsesParts).map((type) => `input[].content[].${type}`),
  ...[...droppedItems].map((type) => `input[].${type}`),
];

function droppedTypes(parts: Readonly<Record<string, PartPolicy>>): readonly string[] {
  return Object.keys(parts).filter((type) => parts[type] === 'drop');
}

/** The accepted roles, and the neutral role that each one maps to. */
const roles: ReadonlyMap<unknown, Role> = new Map([
  ['system', 'system'],
  ['developer', 'system'],
  ['user', 'user'],
  ['assistant', 'assistant'],
]);

/** The content parts of one kind of message: how each type is read, and how its fields are. */
interface PartKind {
  /** The usual types of parts with text, for error messages. */
  readonly named: string;
  readonly types: Readonly<Record<string, PartPolicy>>;
  /** The prefix of the fields' names in the registry. */
  readonly prefix: string;
  readonly readFields: ObjectReader;
}

/** Makes the reader of a kind of messages: their role becomes a neutral one, and their content its text. */
export function messageReader(
  message: FieldSet,
  part: FieldSet,
  { named, types }: Pick<PartKind, 'named' | 'types'>,
): ObjectReader {
  const kind = { named, types, prefix: part.prefix, readFields: objectReader(part) };
  return objectReader(message, {
    role: readRole,
    content: (content, path, context) => readContent(content, path, kind, context),
  });
}

/** Reads a message's role. Tool roles are refused by name: tools are not part of the service. */
function readRole(value: unknown, path: string): Role | Refusal {
  const role = roles.get(value);
  if (role !== undefined) return role;
  if (value === 'tool' || value === 'function')
    return unsupportedValue(path, 'Tool messages are not available: this service works on text only.');
  return invalidValue(path, String(value), ['system', 'developer', 'user', 'assistant']);
}

/** Reads a message's content: a string, or the texts of its parts joined in order. */
function readContent(content: unknown, path: string, kind: PartKind, context: ReadContext): string | Refusal {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return invalidType(path, 'a string or an array of text parts', content);
  if (content.length === 0) return emptyArray(path);
  const excess = tooManyItems(path, content.length);
  if (excess !== null) return excess;
  let joined = '';
  for (const [index, part] of content.entries()) {
    const text = readPart(part, `${path}[${index}]`, kind, context);
    if (typeof text !== 'string') return text;
    joined += text;
  }
  return joined;
}

function readPart(
  part: unknown,
  path: string,
  { types, prefix, readFields, named }: PartKind,
  context: ReadContext,
): string | Refusal {
  if (!isPlainObject(part)) return invalidType(path, 'an object', part);
  const { type } = part;
  if (type === undefined) return missingParameter(`${path}.type`);
  if (typeof type !== 'string') return invalidType(`${path}.type`, 'a string', type);
  const policy = Object.hasOwn(types, type) ? types[type] : undefined;
  if (policy === undefined)
    return unsupportedValue(`${path}.type`, `Only text is available, in parts of the type ${named}.`);
  if (policy === 'drop') {
    context.stripped.add(prefix + type);
    return '';
  }
  const values = readFields(part, `${path}.`, context);
  if (isRefusal(values)) return values;
  const text = part[policy];
  if (text === undefined) return missingParameter(`${path}.${policy}`);
  return typeof text === 'string' ? text : invalidType(`${path}.${policy}`, 'a string', text);
}
