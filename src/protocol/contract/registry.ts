import { chatParameters, streamOptionFields } from './chat-parameters.ts';
import {
  contentPartFields,
  droppedNames,
  inputMessageFields,
  inputPartFields,
  messageFields,
} from './messages.ts';
import type { FieldSet } from './read-fields.ts';
import { responsesParameters, responsesStreamOptionFields, textFields } from './responses-parameters.ts';
import { formatFields } from './shared-parameters.ts';

/** The whole contract: every kind of object in a request, with the fields that it may have. */
export const registry = {
  chat: { prefix: '', rules: chatParameters, unknown: 'policy' },
  responses: { prefix: '', rules: responsesParameters, unknown: 'policy' },
  streamOptions: { prefix: 'stream_options.', rules: streamOptionFields, unknown: 'policy' },
  responsesStreamOptions: {
    prefix: 'stream_options.',
    rules: responsesStreamOptionFields,
    unknown: 'policy',
  },
  responseFormat: { prefix: 'response_format.', rules: formatFields, unknown: 'policy' },
  text: { prefix: 'text.', rules: textFields, unknown: 'policy' },
  textFormat: { prefix: 'text.format.', rules: formatFields, unknown: 'policy' },
  // Apps replay every field that they once received in a history, so none of these is refused for its name.
  message: { prefix: 'messages[].', rules: messageFields, unknown: 'strip' },
  contentPart: { prefix: 'messages[].content[].', rules: contentPartFields, unknown: 'strip' },
  inputMessage: { prefix: 'input[].', rules: inputMessageFields, unknown: 'strip' },
  inputPart: { prefix: 'input[].content[].', rules: inputPartFields, unknown: 'strip' },
} as const satisfies Readonly<Record<string, FieldSet>>;

const names: ReadonlySet<string> = new Set([
  ...Object.values(registry).flatMap(({ prefix, rules }) => rules.map(({ name }) => prefix + name)),
  ...droppedNames,
]);

/** The label for names that are not in the registry. */
const other = 'other';

/** The metric label of a stripped field; unlisted ones are `other`. */
export function strippedLabel(name: string): string {
  return names.has(name) ? name : other;
}

/**
 * The registry's name for the `param` of a refusal: `messages[3].content[0]` becomes
 * `messages[].content`. Names that clients make up become `other`, so that they can't become metric labels.
 */
export function registeredName(path: string): string {
  for (const parts = path.replaceAll(/\[\d+\]/g, '[]').split('.'); parts.length > 0; parts.pop()) {
    const name = parts.join('.');
    if (names.has(name)) return name;
    const withoutIndex = name.replace(/\[\]$/, '');
    if (names.has(withoutIndex)) return withoutIndex;
  }
  return other;
}
