import { registry } from '../../src/protocol/contract/registry.ts';
import type { FieldSet } from '../../src/protocol/contract/read-fields.ts';
import type { Rule } from '../../src/protocol/contract/rule.ts';
import { maxItems } from '../../src/protocol/contract/value-refusals.ts';

/** A schema of JSON Schema 2020-12, as OpenAPI 3.1 has them. */
export type JsonSchema = Readonly<Record<string, unknown>>;

export function schemaRef(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

const listOf = (name: string): JsonSchema => ({
  type: 'array',
  items: schemaRef(name),
  minItems: 1,
  maxItems,
});
const textOr = (name: string): JsonSchema => ({ anyOf: [{ type: 'string' }, listOf(name)] });

/** The fields whose values are objects with fields of their own, by the registry's name of what they are in. */
const nestedFields: Readonly<Record<string, Readonly<Record<string, JsonSchema>>>> = {
  chat: {
    messages: listOf('ChatMessage'),
    stream_options: schemaRef('ChatStreamOptions'),
    response_format: schemaRef('TextFormat'),
  },
  responses: {
    input: textOr('InputItem'),
    stream_options: schemaRef('ResponsesStreamOptions'),
    text: schemaRef('TextOptions'),
  },
  text: { format: schemaRef('TextFormat') },
  message: { content: textOr('ContentPart') },
  inputMessage: { content: textOr('InputPart') },
};

/** Schemas of the contract's objects, by their names in the document, with their names in the registry. */
const objects = {
  ChatCompletionRequest: 'chat',
  ResponseRequest: 'responses',
  ChatStreamOptions: 'streamOptions',
  ResponsesStreamOptions: 'responsesStreamOptions',
  TextFormat: 'responseFormat',
  TextOptions: 'text',
  ChatMessage: 'message',
  ContentPart: 'contentPart',
  InputMessage: 'inputMessage',
  InputPart: 'inputPart',
} as const satisfies Readonly<Record<string, keyof typeof registry>>;

/**
 * The request schemas, made of the contract's rules. What is refused whatever its value is left out; of what is refused
 * unless it asks for nothing, the neutral values are listed.
 */
export function contractSchemas(): Readonly<Record<string, JsonSchema>> {
  const made = Object.entries(objects).map(([name, key]) => [name, objectSchema(key)] as const);
  return {
    ...Object.fromEntries(made),
    InputItem: {
      anyOf: [
        schemaRef('InputMessage'),
        {
          type: 'object',
          description: 'Dropped: thoughts of an earlier answer are no part of the conversation’s text.',
          properties: { type: { const: 'reasoning' } },
          required: ['type'],
        },
      ],
    },
  };
}

function objectSchema(key: keyof typeof registry): JsonSchema {
  const { rules, unknown }: FieldSet = registry[key];
  const taken = rules.filter(isTaken);
  const required = taken
    .filter(({ policy }) => policy.kind === 'forward' && policy.required === true)
    .map(({ name }) => name);
  return {
    type: 'object',
    properties: Object.fromEntries(taken.map((rule) => [rule.name, fieldSchema(rule, nestedFields[key])])),
    ...(required.length === 0 ? {} : { required }),
    ...(unknown === 'policy' ? { additionalProperties: false } : {}),
  };
}

function isTaken({ policy }: Rule): boolean {
  return policy.kind !== 'misplaced' && (policy.kind !== 'refuse' || policy.neutral.length > 0);
}

function fieldSchema({ name, type, policy, why }: Rule, nested: Readonly<Record<string, JsonSchema>> = {}) {
  const own = nested[name];
  const isRequired = policy.kind === 'forward' && policy.required === true;
  switch (policy.kind) {
    case 'refuse':
      return { enum: [...policy.neutral, null], description: `Changes nothing: ${why}.` };
    case 'forward': {
      const value = own ?? type.json;
      return { ...(isRequired ? value : orNull(value)), description: `${capital(why)}.` };
    }
    case 'sampling':
      return { ...orNull(type.json), description: `Dropped, or in strict mode refused: ${why}.` };
    case 'echo':
      return { ...orNull(type.json), description: `Dropped, and repeated in the response: ${why}.` };
    case 'strip':
    case 'misplaced':
      return { ...orNull(type.json), description: `Dropped: ${why}.` };
  }
}

/** `null` in an optional field means that the field is absent. A type that accepts anything accepts it, too. */
function orNull(schema: JsonSchema): JsonSchema {
  return Object.keys(schema).length === 0 ? schema : { anyOf: [schema, { type: 'null' }] };
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
