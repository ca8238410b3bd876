import { z } from 'zod';
import { isPlainObject } from '../../shared/parse-json.ts';
import { valueKinds } from '../../shared/schema-values.ts';
import type { ValueKind } from '../../shared/schema-values.ts';
import { anyConfig } from './schema.ts';

/** A schema of JSON Schema, of which only these properties are changed. */
type JsonSchema = z.core.JSONSchema.BaseSchema;

/** A place in a text where a reference to an environment variable is replaced: its other rules hold for the value. */
const reference = String.raw`\$\{`;

/** What an editor accepts for values that are written with a unit. Prices may be numbers in YAML. */
const kindSchemas: Readonly<Partial<Record<ValueKind, JsonSchema>>> = {
  duration: { type: 'string', pattern: String.raw`^\d+(\.\d+)?(ms|s|m|h|d)$|${reference}` },
  size: { type: 'string', pattern: String.raw`^\d+ ?(B|KiB|MiB|GiB)$|${reference}` },
  instant: { type: 'string', pattern: String.raw`^\d{4}-\d{2}-\d{2}(T.+)?$|${reference}` },
  share: {
    type: ['string', 'number'] as unknown as 'string',
    minimum: 0,
    maximum: 1,
    pattern: String.raw`^(100|\d{1,2}(\.\d+)?)%$|^([01]|0?\.\d+)$|${reference}`,
  },
  usd: {
    type: ['string', 'number'] as unknown as 'string',
    minimum: 0,
    pattern: String.raw`^\d{1,16}(\.\d{1,9})?$|${reference}`,
  },
};

/**
 * The JSON Schema of a config file, for editors and for the documentation: every key with its description, its default
 * and examples. It accepts what a file may hold, so also `${NAME}` in place of any value.
 */
export function configSchema(): JsonSchema {
  return z.toJSONSchema(anyConfig, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => adapt(zodSchema as unknown as z.ZodType, jsonSchema),
  });
}

/** Completes the JSON Schema of a value whose text is read into something else, and admits references. */
function adapt(schema: z.ZodType, json: JsonSchema): void {
  const kind = valueKinds.get(schema)?.kind;
  if (kind !== undefined) Object.assign(json, kindSchemas[kind]);
  // The library leaves these out where a value is transformed, although they are meant for what is written.
  const examples = schema.meta()?.['examples'];
  if (Array.isArray(examples)) json.examples = examples;
  if (schema instanceof z.ZodDefault) json.default = schema.def.defaultValue;
  if (isPlainObject(json.default) && Object.keys(json.default).length === 0) delete json.default;
  if (json.maximum === Number.MAX_SAFE_INTEGER) delete json.maximum;
  admitReferences(json);
}

function admitReferences(json: JsonSchema): void {
  if (json.type === 'integer') admitText(json, String.raw`^\d+$`);
  if (json.type === 'boolean' && json.const === undefined) admitText(json, '^(true|false)$');
  if (json.type !== 'string') return;
  if ((json.minLength ?? 0) > 1) delete json.minLength;
  if (json.pattern !== undefined && !json.pattern.includes(reference)) json.pattern += `|${reference}`;
  if (json.enum !== undefined) {
    json.anyOf = [{ enum: json.enum }, { type: 'string', pattern: reference }];
    delete json.enum;
  }
}

/** Admits a text with a reference, or with the value itself, in place of a number or switch. */
function admitText(json: JsonSchema, pattern: string): void {
  json.type = [json.type, 'string'] as unknown as 'string';
  json.pattern = `${pattern}|${reference}`;
}
