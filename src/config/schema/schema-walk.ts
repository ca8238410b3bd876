import { z } from 'zod';
import { valueKinds } from '../../shared/schema-values.ts';
import type { ValueKind } from '../../shared/schema-values.ts';

/** The schema of what an author writes, below its defaults and what a value is read into. */
export function unwrap(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodPrefault || schema instanceof z.ZodDefault || schema instanceof z.ZodOptional)
    return unwrap(schema.unwrap() as z.ZodType);
  if (!(schema instanceof z.ZodPipe) || valueKinds.get(schema) !== undefined) return schema;
  return unwrap((schema.in instanceof z.ZodTransform ? schema.out : schema.in) as z.ZodType);
}

/** The kind of a schema's values; `undefined` for plain texts, numbers, lists and objects. */
export function kindOf(schema: z.ZodType): ValueKind | undefined {
  const inner = unwrap(schema);
  if (inner instanceof z.ZodUnion)
    return inner.options.map((option) => kindOf(option as z.ZodType)).find((kind) => kind !== undefined);
  return valueKinds.get(inner)?.kind;
}

/** The schema of a key or list item of a schema's values; `null` for an unknown key. */
function childSchema(schema: z.ZodType, key: PropertyKey): z.ZodType | null {
  const inner = unwrap(schema);
  if (inner instanceof z.ZodUnion)
    return (
      inner.options.map((option) => childSchema(option as z.ZodType, key)).find((child) => child !== null) ??
      null
    );
  if (inner instanceof z.ZodObject)
    return Object.hasOwn(inner.shape, key) ? (inner.shape[String(key)] as z.ZodType) : null;
  if (inner instanceof z.ZodRecord) return inner.valueType as z.ZodType;
  return inner instanceof z.ZodArray ? (inner.element as z.ZodType) : null;
}

/** The schema at a path; `null` for an unknown one. */
export function schemaAt(schema: z.ZodType, path: readonly PropertyKey[]): z.ZodType | null {
  let here: z.ZodType | null = schema;
  for (const key of path) here = here === null ? null : childSchema(here, key);
  return here;
}

/** The keys that the schema accepts at a path. */
export function knownKeys(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  const here = schemaAt(schema, path);
  return here === null ? [] : keysOf(unwrap(here));
}

function keysOf(schema: z.ZodType): readonly string[] {
  if (schema instanceof z.ZodUnion)
    return schema.options.flatMap((option) => keysOf(unwrap(option as z.ZodType)));
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}

/** All keys that a schema names, at any depth; some several times. */
export function allKeys(schema: z.ZodType): readonly string[] {
  const inner = unwrap(schema);
  if (inner instanceof z.ZodUnion) return inner.options.flatMap((option) => allKeys(option as z.ZodType));
  if (inner instanceof z.ZodRecord) return allKeys(inner.valueType as z.ZodType);
  if (inner instanceof z.ZodArray) return allKeys(inner.element as z.ZodType);
  if (!(inner instanceof z.ZodObject)) return [];
  const values = Object.values(inner.shape) as z.ZodType[];
  return [...Object.keys(inner.shape), ...values.flatMap(allKeys)];
}

/** What a value is: a text of a kind, any other value of a known key (`plain`), or all that is under an unknown key. */
export type PlaceKind = ValueKind | 'plain' | 'unknown';

/** Changes one value, a text, number, switch or null, or what a text was read into; `undefined` leaves its key out. */
export type ChangeValue = (value: unknown, kind: PlaceKind, path: readonly PropertyKey[]) => unknown;

/** A copy of an unchecked or checked config in which every value is changed. What is under an unknown key is one value. */
export function mapValues(
  schema: z.ZodType,
  value: unknown,
  change: ChangeValue,
  path: readonly PropertyKey[] = [],
): unknown {
  const mapItem = (item: unknown, key: PropertyKey): unknown => {
    const inner = childSchema(schema, key);
    const here = [...path, key];
    return inner === null ? change(item, 'unknown', here) : mapValues(inner, item, change, here);
  };
  if (Array.isArray(value)) return value.map(mapItem);
  if (!isPlainObject(value)) return change(value, kindOf(schema) ?? 'plain', path);
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, item]) => [key, mapItem(item, key)] as const)
      .filter(([, item]) => item !== undefined),
  );
}

/** Whether a value is an object with keys of the config, and not what a text was read into, such as a `URL`. */
function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !(value instanceof URL);
}
