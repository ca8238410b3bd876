import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { isPlainObject } from '../../shared/parse-json.ts';
import type { Role } from '../text.ts';
import type { PartPolicy } from './message-fields.ts';
import type { ObjectReader, ReadContext } from './read-fields.ts';
import { emptyArray, invalidType, invalidValue, missingParameter, tooManyItems } from './value-refusals.ts';

/** The accepted roles, and the neutral role that each one maps to. */
const roles: ReadonlyMap<unknown, Role> = new Map([
  ['system', 'system'],
  ['developer', 'system'],
  ['user', 'user'],
  ['assistant', 'assistant'],
]);

/** The content parts of one kind of message: how each type is read, and how its fields are. */
export interface PartKind {
  /** The usual types of parts with text, for error messages. */
  readonly named: string;
  readonly types: Readonly<Record<string, PartPolicy>>;
  /** The prefix of the fields' names in the registry. */
  readonly prefix: string;
  readonly readFields: ObjectReader;
}

/** Reads a message's role. Tool roles are refused by name: tools are not part of the service. */
export function readRole(value: unknown, path: string): Role | Refusal {
  const role = roles.get(value);
  if (role !== undefined) return role;
  if (value === 'tool' || value === 'function')
    return unsupportedValue(path, 'Tool messages are not available: this service works on text only.');
  return invalidValue(path, String(value), ['system', 'developer', 'user', 'assistant']);
}

/** Reads a message's content: a string, or the texts of its parts joined in order. */
export function readContent(
  content: unknown,
  path: string,
  kind: PartKind,
  context: ReadContext,
): string | Refusal {
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

/** The refusal for an unsupported value; `advice` says what is offered instead. */
export function unsupportedValue(path: string, advice: string): Refusal {
  return refuse('unsupported_value', `Unsupported value: '${path}'. ${advice}`, { param: path });
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
  const text = part[policy.textKey];
  if (text === undefined) return missingParameter(`${path}.${policy.textKey}`);
  return typeof text === 'string' ? text : invalidType(`${path}.${policy.textKey}`, 'a string', text);
}
