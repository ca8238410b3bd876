import type { z } from 'zod';
import { nearestName } from '../../shared/nearest-name.ts';
import type { Environment } from '../environment.ts';
import type { Problem } from '../problem.ts';
import { canQuoteVariable } from '../quotable.ts';
import { mapValues } from '../schema/schema-walk.ts';
import type { PlaceKind } from '../schema/schema-walk.ts';

/** A `$` in a value: `$$`, `${NAME}`, `${NAME:-default}`, or anything else, which is a mistake. */
const dollars = /\$(?:(\$)|\{([A-Za-z_]\w*)(?::-([^${}]*))?\})?/g;

/** A text that is one reference, with or without braces. */
const wholeReference = /^\$(?:\{[A-Za-z_]\w*(?::-[^${}]*)?\}|[A-Z_][A-Z0-9_]+)$/;

/** The shortest misspelt name for which the nearest variable is suggested: fewer characters resemble anything. */
const minSuggestedLength = 4;

/**
 * Replaces `${NAME}` and `${NAME:-default}` in every text of a parsed file, and `$$` by `$`. It does so after parsing and
 * once, so that a variable's value can neither change the file's structure nor refer to other variables. Every other `$`
 * is a problem: a misspelt reference would be sent to the provider as the API key. No problem quotes a value.
 */
export function resolveReferences(
  input: unknown,
  environment: Environment,
): { readonly value: unknown; readonly problems: readonly Problem[] } {
  const problems: Problem[] = [];
  const resolve = (value: unknown, path: readonly PropertyKey[]): unknown => {
    if (typeof value === 'string') {
      const { text, faults } = resolveText(value, environment);
      problems.push(...faults.map((message) => ({ path, message })));
      return text;
    }
    if (Array.isArray(value)) return value.map((item, index) => resolve(item, [...path, index]));
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value).map(([key, item]) => {
      const here = [...path, key];
      // A key is taken as it is: the reference would become the name of a model.
      if (key.includes('${')) problems.push({ path: here, message: referenceInKey });
      return [key, resolve(item, here)];
    });
    return Object.fromEntries(entries);
  };
  return { value: resolve(input, []), problems };
}

const referenceInKey = 'references are replaced in values only: write the name itself';

/** The values that are written as a reference as a rule. */
const kindsOfReferences: ReadonlySet<PlaceKind> = new Set(['secret', 'key', 'url', 'database']);

/**
 * The secrets and addresses of an object or of variables that are references: nothing replaces them there, for example
 * in an env file of a container, so that they would be sent to the provider as they are.
 */
export function unreplacedReferences(schema: z.ZodType, input: unknown): readonly Problem[] {
  const problems: Problem[] = [];
  mapValues(schema, input, (value, kind, path) => {
    if (kindsOfReferences.has(kind) && typeof value === 'string' && isReference(value))
      problems.push({ path, message: unreplaced });
    return value;
  });
  return problems;
}

/** Whether a text is a reference and nothing else. */
export function isReference(text: string): boolean {
  return wholeReference.test(text.trim());
}

/** What is wrong with a reference outside a config file. */
export const unreplaced = 'a reference, which is replaced in config files only: write the value itself';

function resolveText(
  text: string,
  environment: Environment,
): { readonly text: string; readonly faults: readonly string[] } {
  const misspelt: string[] = [];
  const missing: string[] = [];
  const resolved = text.replace(
    dollars,
    (
      whole,
      escaped: string | undefined,
      name: string | undefined,
      fallback: string | undefined,
      at: number,
    ) => {
      if (escaped !== undefined) return '$';
      if (name === undefined) {
        misspelt.push(describeDollar(text, at, environment));
        return whole;
      }
      const found = environment[name];
      const isBlank = found === undefined || found.trim() === '';
      if (isBlank && fallback === undefined) missing.push(describeMissing(name, environment));
      return isBlank ? (fallback ?? whole) : found;
    },
  );
  // What follows a misspelt reference may be a part of it.
  return { text: resolved, faults: misspelt.length > 0 ? misspelt.slice(0, 1) : missing };
}

function describeMissing(name: string, environment: Environment): string {
  if (environment[name] !== undefined)
    return `the environment variable ${name} is set but empty: give it a value, or write \${${name}:-default}`;
  if (!canQuoteVariable(name, environment)) return 'the environment variable in these braces is not set';
  const nearest = name.length < minSuggestedLength ? null : nearestName(name, Object.keys(environment));
  const hint = nearest === null ? '' : `; did you mean ${nearest}?`;
  return `the environment variable ${name} is not set${hint}`;
}

/** What is wrong with the `$` at an index of a text, and how a reference is written. */
function describeDollar(text: string, at: number, environment: Environment): string {
  const rest = text.slice(at);
  const operated = nameBeforeOperator(rest);
  // In small letters, it could be the beginning of a secret with a hyphen.
  const isName = operated !== null && (operated in environment || operated === operated.toUpperCase());
  if (isName && canQuoteVariable(operated, environment))
    return `not a reference: write \${${operated}}, or \${${operated}:-default} with a default without $, { and }`;
  const name = misspeltName(rest) ?? bareName(text, rest, environment);
  return name === null || !canQuoteVariable(name, environment)
    ? 'a $ that begins no reference: write ${NAME} for an environment variable, or $$ for a $ itself'
    : `a $ that begins no reference: did you mean \${${name}}? Write $$ for a $ itself`;
}

/** The name in `${KEY-default}` or `${KEY:?text}`, as other programs write defaults; `null` for `${MY-KEY}`. */
function nameBeforeOperator(rest: string): string | null {
  const [, name, operator, operand = ''] = /^\$\{([A-Za-z_]\w*)(:?[-?+=]|:)([^{}]*)/.exec(rest) ?? [];
  if (name === undefined) return null;
  const words = name + operand;
  const isOneCase = [words.toUpperCase(), words.toLowerCase()].includes(words);
  // No default, but as secrets are: the name could be the beginning of one.
  const isMixed = [/[A-Z]/, /[a-z]/, /\d/].every((kind) => kind.test(operand));
  const isOneName = /^[\w-]+$/.test(operand) && (isOneCase || isMixed);
  return operator === '-' && isOneName && !/^\d+$/.test(operand) ? null : name;
}

/** The name in `${MY-KEY}`, `${ KEY }`, `$ {KEY}`, `$(KEY)` or `${KEY`, as a variable's name can be written. */
function misspeltName(rest: string): string | null {
  const [, inBraces, inParentheses] =
    /^\$\s?(?:\{\s*([A-Za-z_][\w .-]*?)\s*(?:\}|$)|\(\s*([A-Za-z_][\w .-]*?)\s*\))/.exec(rest) ?? [];
  return (inBraces ?? inParentheses)?.replaceAll(/[ .-]/g, '_') ?? null;
}

/** The name in `$KEY` if it is one for sure: the whole text, or the name of a variable; `null` for a part of a secret. */
function bareName(text: string, rest: string, environment: Environment): string | null {
  const [, name = null] = /^\$([A-Za-z_]\w*)/.exec(rest) ?? [];
  if (name === null) return null;
  const isWhole = /^(?:[Bb]earer )?\$[A-Z_][A-Z0-9_]*$/.test(text.trim());
  return isWhole || environment[name] !== undefined ? name : null;
}
