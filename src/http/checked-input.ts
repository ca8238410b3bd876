import type { IncomingMessage } from 'node:http';
import { parse as parseQuery } from 'node:querystring';
import { z } from 'zod';
import { maxPageSize } from '../domain/ports/records.ts';
import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { nearestName } from '../shared/nearest-name.ts';
import { parseJson } from '../shared/parse-json.ts';
import { schemaMessage } from '../shared/schema-messages.ts';
import { storedText } from '../shared/schema-values.ts';
import { searchableId } from '../shared/storable-text.ts';
import { readBody } from './body.ts';
import type { Request, Response } from './router.ts';

const maxBodyBytes = 65_536;
const defaultPageSize = 50;

/** The longest name of a parameter that is compared with the known ones. */
const maxHintedLength = 64;

/** A whole number in a query, within bounds. */
export function wholeNumberFrom(least: number, most: number) {
  const problem = `expected a whole number from ${least} to ${most}`;
  return z.coerce.number<number | string>(problem).int(problem).min(least, problem).max(most, problem);
}

/** How many entries of a list are asked for: from 1 to `most`, and `usual` where the query does not say it. */
export function entryCount(most: number, usual: number) {
  return wholeNumberFrom(1, most).default(usual);
}

/** What an answer is grouped by: some of a few names, separated by commas, each once; none by default. */
export function namesAmong<Name extends string>(known: readonly Name[]) {
  const isKnown = (name: string): name is Name => known.some((one) => one === name);
  return z
    .string()
    .transform((text, context) => {
      const names = text === '' ? [] : [...new Set(text.split(',').map((name) => name.trim()))];
      const found = names.filter(isKnown);
      if (found.length === names.length) return found;
      const message = `expected groups among ${known.join(', ')}, separated by commas`;
      context.issues.push({ code: 'custom', input: text, message });
      return z.NEVER;
    })
    .default([])
    .describe(`Groups, separated by commas: ${known.join(', ')}.`);
}

/** The query of a list: the page size, and the id after which the page starts. */
export const pageQuery = z.strictObject({
  limit: entryCount(maxPageSize, defaultPageSize),
  before: storedText.optional(),
});

/** The query of a request with its question mark, without a fragment, which is not meant for servers. */
export function queryOf({ url = '/' }: IncomingMessage): string {
  const [target = ''] = url.split('#', 1);
  const start = target.indexOf('?');
  return start === -1 ? '' : target.slice(start);
}

/**
 * Reads the fields of a schema from the query, which may have others, such as those that proxies add. Not by Express,
 * because a surrounding app may have none of its parsers, or another one.
 */
export function readQuery(request: Request, { shape }: z.ZodObject): object {
  const query = Object.entries(parseQuery(queryOf(request).slice(1)));
  return Object.fromEntries(query.filter(([name]) => Object.hasOwn(shape, name)));
}

/**
 * Reads the fields of a schema from the query, of which it may have no others: one that is misspelt would be left out, and the
 * answer be of more than was asked for. `what` is the thing that takes them, in the refusal.
 */
export function readWholeQuery(request: Request, { shape }: z.ZodObject, what: string): object | Refusal {
  const query = parseQuery(queryOf(request).slice(1));
  const unknown = Object.keys(query).find((name) => !Object.hasOwn(shape, name));
  if (unknown === undefined) return query;
  const known = Object.keys(shape);
  const meant = nearestName(unknown.slice(0, maxHintedLength), known);
  const hint = meant === null ? '' : ` Did you mean '${meant}'?`;
  const message = `Unknown parameter: '${unknown}'.${hint} ${what} takes ${known.join(', ')}.`;
  return refuse('unknown_parameter', message, { param: unknown });
}

/** Reads the query of a list, as `readWholeQuery` does, and checks it. */
export function checkQuery<Schema extends z.ZodObject>(
  request: Request,
  schema: Schema,
  what: string,
): z.output<Schema> | Refusal {
  const query = readWholeQuery(request, schema, what);
  return isRefusal(query) ? query : check(query, schema);
}

/** The `:id` in the path of a route. */
export function pathIdOf(request: Request): string {
  return searchableId(String(request.params['id']));
}

/** The refusal of a time that ends before it begins: an empty answer would look like a time without anything. */
export function endsTooEarly(): Refusal {
  return refuse('invalid_value', "Invalid 'to': expected a time after 'from'.", { param: 'to' });
}

const listCursorProblem =
  'no entry of this list has this id. Send the `next` of a page of this very list, or nothing to begin with the newest entry';

/** The refusal of an unknown cursor: an empty page would look like the end of the list. */
export function unknownCursor(param = 'before', problem = listCursorProblem): Refusal {
  return refuse('invalid_value', `Invalid '${param}': ${problem}.`, { param });
}

/** How many names a refusal lists. */
const maxListed = 20;

/** Names in a refusal, separated by commas: the first ones, and how many more there are. */
export function listNames(names: readonly string[]): string {
  const others = names.length > maxListed ? ` and ${names.length - maxListed} more` : '';
  return names.slice(0, maxListed).join(', ') + others;
}

/** Reads a JSON body. */
export async function readJson(request: Request, response: Response): Promise<unknown> {
  const bytes = await readBody(request, response, maxBodyBytes);
  if (isRefusal(bytes)) return bytes;
  const body = parseJson(Buffer.from(bytes).toString('utf8'));
  return body === undefined ? refuse('invalid_json', 'The request body could not be parsed as JSON.') : body;
}

/** Reads a JSON body and checks it. */
export async function readInput<Schema extends z.ZodType>(
  request: Request,
  response: Response,
  schema: Schema,
): Promise<z.output<Schema> | Refusal> {
  const body = await readJson(request, response);
  return isRefusal(body) ? body : check(body, schema);
}

/** Checks a value against a schema; the first problem becomes the refusal, which names the field. */
export function check<Schema extends z.ZodType>(input: unknown, schema: Schema): z.output<Schema> | Refusal {
  const read = schema.safeParse(input, { error: schemaMessage });
  return read.success ? read.data : firstProblem(read.error);
}

function firstProblem(error: z.ZodError): Refusal {
  const [issue] = error.issues;
  if (issue?.code === 'unrecognized_keys') {
    const [key = ''] = issue.keys;
    return refuse('unknown_parameter', `Unknown parameter: '${key}'.`, { param: key });
  }
  const param = issue?.path.join('.') ?? '';
  const what = param === '' ? 'input' : `'${param}'`;
  return refuse('invalid_value', `Invalid ${what}: ${issue?.message ?? 'not usable'}.`, {
    param: param === '' ? null : param,
  });
}
