import { chatParameters, streamOptionFields } from './chat-parameters.ts';
import { inputMessageFields, messageFields } from './message-fields.ts';
import { createFieldSet } from './read-fields.ts';
import type { FieldSet } from './read-fields.ts';
import { responsesParameters, textFields } from './responses-parameters.ts';

/** The whole contract: every kind of object in a request, with the fields that it may have. */
export const registry = {
  chat: createFieldSet('', chatParameters, 'policy'),
  responses: createFieldSet('', responsesParameters, 'policy'),
  streamOptions: createFieldSet('stream_options.', streamOptionFields, 'drop'),
  text: createFieldSet('text.', textFields, 'drop'),
  message: createFieldSet('messages[].', messageFields, 'drop'),
  inputMessage: createFieldSet('input[].', inputMessageFields, 'drop'),
} as const satisfies Readonly<Record<string, FieldSet>>;

const names: ReadonlySet<string> = new Set(
  Object.values(registry).flatMap(({ prefix, rules }) => rules.map(({ name }) => prefix + name)),
);

/** The label for names that are not in the registry. */
const other = 'other';

/**
 * The registry's name for a stripped field or for the `param` of a refusal: `messages[3].content[0]` becomes
 * `messages[].content`. Names that clients make up become `other`, so that they can't become metric labels.
 */
export function registeredName(path: string): string {
  const parts = path.replaceAll(/\[\d+\]/g, '[]').split('.');
  for (let length = parts.length; length > 0; length--) {
    const name = parts.slice(0, length).join('.');
    if (names.has(name)) return name;
    const withoutIndex = name.replace(/\[\]$/, '');
    if (names.has(withoutIndex)) return withoutIndex;
  }
  return other;
}
