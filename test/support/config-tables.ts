import { stringify } from 'yaml';
import { z } from 'zod';
import { kindOf, unwrap } from '../../src/config/schema/schema-walk.ts';
import { anyConfig } from '../../src/config/schema/schema.ts';
import type { ValueKind } from '../../src/shared/schema-values.ts';

/** How the documentation names the values that have a form of their own. */
const kindNames: Readonly<Record<ValueKind, string>> = {
  duration: 'duration',
  size: 'size',
  usd: 'USD',
  share: 'percentage',
  url: 'address',
  database: 'address',
  secret: 'secret',
  key: 'secret, or its hash',
  path: 'text',
  instant: 'time',
};

/** The keys that are objects with the same keys as another one, which has the rows. */
const described = new Map([['models.price', '`models.<name>.price`']]);

/** The documentation's tables of all config keys, one for each section. */
export function writeConfigTables(): string {
  const sections = Object.entries(anyConfig.shape) as [string, z.ZodType][];
  return sections
    .map(([name, schema]) => {
      const head = `### ${name}\n\n${descriptionOf(schema)}`;
      return `${head}\n\n| key | value | default | meaning |\n|---|---|---|---|\n${rowsIn(schema, name).join('\n')}`;
    })
    .join('\n\n');
}

/** The rows of all keys inside a value, in the order of the schema. */
function rowsIn(schema: z.ZodType, path: string): readonly string[] {
  const inner = unwrap(schema);
  // The usual form first: a list of models before the discovery of models.
  if (inner instanceof z.ZodUnion)
    return inner.options.toReversed().flatMap((option) => rowsIn(option as z.ZodType, path));
  if (inner instanceof z.ZodRecord) return rowsIn(inner.valueType as z.ZodType, `${path}.<name>`);
  if (inner instanceof z.ZodArray) return rowsIn(inner.element as z.ZodType, `${path}[]`);
  if (!(inner instanceof z.ZodObject)) return [];
  return Object.entries(inner.shape).flatMap(([key, value]) => {
    const here = `${path}.${key}`;
    const other = described.get(here);
    const row = writeRow(here, value as z.ZodType, other);
    return other === undefined ? [row].concat(rowsIn(value as z.ZodType, here)) : [row];
  });
}

function writeRow(path: string, schema: z.ZodType, other: string | undefined): string {
  const meaning = other === undefined ? descriptionOf(schema) : `${descriptionOf(schema)} Keys: ${other}.`;
  return `| \`${path}\` | ${typeOf(schema)} | ${defaultOf(schema)} | ${meaning} |`;
}

function typeOf(schema: z.ZodType): string {
  const kind = kindOf(schema);
  if (kind !== undefined) return kindNames[kind];
  const inner = unwrap(schema);
  if (inner instanceof z.ZodEnum) return inner.options.map((option) => `\`${option}\``).join(', ');
  if (inner instanceof z.ZodArray) return typeOfList(unwrap(inner.element as z.ZodType));
  if (inner instanceof z.ZodBoolean) return '`true`, `false`';
  if (inner instanceof z.ZodLiteral) return `\`${String(inner.value)}\``;
  if (inner instanceof z.ZodNumber) return inner.isInt ? 'whole number' : 'number';
  if (inner instanceof z.ZodUnion) return typesOf(inner.options as readonly z.ZodType[]);
  if (inner instanceof z.ZodPipe) return typeOf(inner.in as z.ZodType);
  return inner instanceof z.ZodString ? 'text' : 'object';
}

/** The forms that a value may have, the usual one first: an object or a text. */
function typesOf(options: readonly z.ZodType[]): string {
  return [...new Set(options.toReversed().map(typeOf))].join(' or ');
}

function typeOfList(element: z.ZodType): string {
  return element instanceof z.ZodEnum ? `list of ${typeOf(element)}` : `list of ${typeOf(element)}s`;
}

function defaultOf(schema: z.ZodType): string {
  if (schema instanceof z.ZodOptional) return '–';
  if (!(schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault)) return 'required';
  const value: unknown = schema.def.defaultValue;
  if (JSON.stringify(value) === '{}') return '–';
  return `\`${stringify(value, { collectionStyle: 'flow', flowCollectionPadding: false, lineWidth: 0 }).trim()}\``;
}

function descriptionOf(schema: z.ZodType): string {
  return schema.meta()?.description ?? '';
}
