import type { Request, Response } from 'express';
import { z } from 'zod';
import { maxPageSize } from '../domain/page-size.ts';
import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { parseJson } from '../shared/parse-json.ts';
import { schemaMessage } from '../shared/schema-messages.ts';
import { readBody } from './body.ts';

const maxBodyBytes = 65_536;
const defaultPageSize = 50;

const pageSizes = `expected a whole number from 1 to ${maxPageSize}`;

/** The query of a list: the page size, and the id after which the page starts. */
export const pageQuery = z.object({
  limit: z.coerce
    .number(pageSizes)
    .int(pageSizes)
    .min(1, pageSizes)
    .max(maxPageSize, pageSizes)
    .default(defaultPageSize),
  before: z.string().optional(),
});

/** The `:id` in the path of a route. */
export function pathIdOf(request: Request): string {
  return String(request.params['id']);
}

/** The refusal of an unknown cursor: an empty page would look like the end of the list. */
export function unknownCursor(): Refusal {
  return refuse('invalid_value', "Invalid 'before': no entry of this list has this id.", { param: 'before' });
}

/** Reads a JSON body and checks it against a schema. */
export async function readChecked<Schema extends z.ZodType>(
  request: Request,
  response: Response,
  schema: Schema,
): Promise<z.output<Schema> | Refusal> {
  const bytes = await readBody(request, response, maxBodyBytes);
  if (isRefusal(bytes)) return bytes;
  const body = parseJson(Buffer.from(bytes).toString('utf8'));
  if (body === undefined) return refuse('invalid_json', 'The request body could not be parsed as JSON.');
  return check(body, schema);
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
  return refuse('invalid_value', `Invalid '${param}': ${issue?.message ?? 'not usable'}.`, {
    param: param === '' ? null : param,
  });
}
