import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import {
  emptyArray,
  invalidType,
  isPlainObject,
  isString,
  missingParameter,
  unsupportedValue,
} from './checks.ts';
import type { Role } from './text.ts';

/** The roles that may speak, and the neutral role each one maps to. */
const roles: Readonly<Record<string, Role>> = {
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
};

/** Which content parts count as text, and the key that holds their text. */
export type PartTypes = Readonly<Record<string, 'text' | 'refusal'>>;

/** Reads a message's role. Tool roles are refused by name: tools are not part of the service. */
export function readRole(value: unknown, path: string): Role | Refusal {
  if (value === undefined) return missingParameter(path);
  const wrongType = isString(value, path);
  if (wrongType !== null) return wrongType;
  const role = Object.hasOwn(roles, value as string) ? roles[value as string] : undefined;
  if (role !== undefined) return role;
  if (value === 'tool' || value === 'function')
    return unsupportedValue(path, 'Tool messages are not available: this service works on text only.');
  return refuse(
    'invalid_value',
    `Invalid value for '${path}'. Supported values are: 'system', 'developer', 'user', and 'assistant'.`,
    { param: path },
  );
}

/** Reads a message's content: a string as it is, or the texts of its parts joined in order. */
export function readContent(content: unknown, path: string, partTypes: PartTypes): string | Refusal {
  if (content === undefined) return missingParameter(path);
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return invalidType(path, 'a string or an array of text parts', content);
  if (content.length === 0) return emptyArray(path);
  let joined = '';
  for (const [index, part] of content.entries()) {
    const text = readPart(part, `${path}[${index}]`, partTypes);
    if (typeof text !== 'string') return text;
    joined += text;
  }
  return joined;
}

function readPart(part: unknown, path: string, partTypes: PartTypes): string | Refusal {
  if (!isPlainObject(part)) return invalidType(path, 'an object', part);
  const { type } = part;
  if (type === undefined) return missingParameter(`${path}.type`);
  if (typeof type !== 'string') return invalidType(`${path}.type`, 'a string', type);
  const key = Object.hasOwn(partTypes, type) ? partTypes[type] : undefined;
  if (key === undefined) {
    const offered = Object.keys(partTypes)
      .map((name) => `'${name}'`)
      .join(', ');
    return unsupportedValue(`${path}.type`, `Only text parts are available here: ${offered}.`);
  }
  const text = part[key];
  if (text === undefined) return missingParameter(`${path}.${key}`);
  return typeof text === 'string' ? text : invalidType(`${path}.${key}`, 'a string', text);
}
