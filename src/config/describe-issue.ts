import { z } from 'zod';
import { nearestName } from '../shared/nearest-name.ts';
import { whyNotDeclared } from './declared-keys.ts';

/** Describes an issue of the schema for the author of the config: its path, and how to fix it. */
export function describeIssue(issue: z.core.$ZodIssue, schema: z.ZodType): readonly string[] {
  if (issue.code === 'invalid_key')
    return issue.issues.map(({ message }) => `${writePath(issue.path)}: ${message}`);
  if (issue.code !== 'unrecognized_keys') return [`${writePath(issue.path)}: ${issue.message}`];
  const known = knownKeys(schema, issue.path);
  return issue.keys.map((key) => {
    const problem = whyNotDeclared(issue.path, key) ?? `unknown key${suggestion(key, known)}`;
    return `${writePath([...issue.path, key])}: ${problem}`;
  });
}

/** Suggests the most similar known name for an unknown one, or lists all known names. */
export function suggestion(wrong: string, known: readonly string[]): string {
  const nearest = nearestName(wrong, known);
  return nearest === null ? `; known names: ${known.join(', ')}` : `; did you mean '${nearest}'?`;
}

function writePath(path: readonly PropertyKey[]): string {
  const written = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
  return written === '' ? 'config' : written.replace(/^\./, '');
}

/** The keys that the schema accepts at a path of the input. */
function knownKeys(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  let here: z.ZodType = unwrap(schema);
  for (const part of path) {
    if (here instanceof z.ZodObject) here = unwrap(here.shape[String(part)] as z.ZodType);
    else if (here instanceof z.ZodRecord) here = unwrap(here.valueType as z.ZodType);
    else if (here instanceof z.ZodArray) here = unwrap(here.element as z.ZodType);
  }
  return here instanceof z.ZodObject ? Object.keys(here.shape) : [];
}

function unwrap(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodPrefault || schema instanceof z.ZodDefault || schema instanceof z.ZodOptional)
    return unwrap(schema.unwrap() as z.ZodType);
  return schema;
}
