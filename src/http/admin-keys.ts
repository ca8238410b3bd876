import { Router } from 'express';
import type { Request, Response } from 'express';
import { z } from 'zod';
import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { ApiKey, KeySettings } from '../domain/api-key.ts';
import type { Limits } from '../domain/limits.ts';
import type { Compatibility } from '../protocol/contract/compatibility.ts';
import type { IssuedKey } from '../operations/issue-key.ts';
import { parseJson } from '../shared/parse-json.ts';
import { readBody } from './body.ts';
import { methodNotAllowed, sendJson, sendRefusal } from './refusal-response.ts';

/** What an operator can do with keys. */
export interface KeyAdministration {
  readonly defaultLimits: Limits;
  readonly defaultCompatibility: Compatibility;
  issue(name: string, settings: KeySettings): Promise<IssuedKey | Refusal>;
  list(
    limit: number,
    before: string | null,
  ): Promise<{ readonly keys: readonly ApiKey[]; readonly next: string | null } | Refusal>;
}

const maxBodyBytes = 65_536;
const maxNameLength = 100;
const defaultPageSize = 50;
const maxPageSize = 200;

const newKey = z.strictObject({
  name: z.string().min(1).max(maxNameLength),
  concurrency: z.int().min(1).optional(),
  requestsPerMinute: z.int().min(1).optional(),
  compatibility: z
    .strictObject({
      sampling: z.enum(['strip', 'strict']).optional(),
      unknownFields: z.enum(['reject', 'ignore']).optional(),
      responsesDone: z.boolean().optional(),
    })
    .optional(),
});

const page = z.object({
  limit: z.coerce.number().int().min(1).max(maxPageSize).default(defaultPageSize),
  before: z.string().optional(),
});

/** `POST` makes a key and shows it this once; `GET` lists keys, newest first, by pages. */
export function createKeyRoutes(keys: KeyAdministration): Router {
  const router = Router();
  router.post('/', async (request, response) =>
    answer(response, 201, await createKey(request, response, keys)),
  );
  router.get('/', async (request, response) => answer(response, 200, await listKeys(request, keys)));
  router.all('/', methodNotAllowed('GET, POST'));
  return router;
}

function answer(response: Response, status: number, result: object): void {
  if (isRefusal(result)) sendRefusal(response, result);
  else sendJson(response, status, JSON.stringify(result));
}

async function createKey(
  request: Request,
  response: Response,
  keys: KeyAdministration,
): Promise<object | Refusal> {
  const bytes = await readBody(request, response, maxBodyBytes);
  if (isRefusal(bytes)) return bytes;
  const body = parseJson(Buffer.from(bytes).toString('utf8'));
  if (body === undefined) return refuse('invalid_json', 'The request body could not be parsed as JSON.');
  const read = newKey.safeParse(body);
  if (!read.success) return firstFault(read.error);
  const { name, ...settings } = read.data;
  const issued = await keys.issue(name, withoutAbsent(settings));
  return isRefusal(issued) ? issued : { ...keyObject(issued.key, keys), key: issued.secret };
}

async function listKeys(request: Request, keys: KeyAdministration): Promise<object | Refusal> {
  const read = page.safeParse(request.query);
  if (!read.success) return firstFault(read.error);
  const listed = await keys.list(read.data.limit, read.data.before ?? null);
  if (isRefusal(listed)) return listed;
  const { keys: found, next } = listed;
  return { object: 'list', data: found.map((key) => keyObject(key, keys)), next };
}

function keyObject(
  { id, name, createdAt, limits, compatibility }: ApiKey,
  { defaultLimits, defaultCompatibility }: KeyAdministration,
): object {
  const { concurrency, requestsPerMinute } = { ...defaultLimits, ...limits };
  return {
    id,
    name,
    created_at: new Date(createdAt).toISOString(),
    limits: { concurrency, requests_per_minute: requestsPerMinute },
    compatibility: { ...defaultCompatibility, ...compatibility },
  };
}

/** zod leaves an absent optional key in as `undefined`, which would hide the service's default. */
function withoutAbsent(settings: object): KeySettings {
  return JSON.parse(JSON.stringify(settings)) as KeySettings;
}

/** The first thing that zod found, with the field it was found in. */
function firstFault(error: z.ZodError): Refusal {
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
