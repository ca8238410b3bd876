import { Router } from 'express';
import type { Request, Response } from 'express';
import { z } from 'zod';
import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { formatUsd } from '../shared/money.ts';
import type { Account, BookedCredit, Credit } from '../domain/account.ts';
import type { ApiKey, KeySettings } from '../domain/api-key.ts';
import type { Limits } from '../domain/limits.ts';
import type { Compatibility } from '../protocol/contract/compatibility.ts';
import type { IssuedKey } from '../operations/issue-key.ts';
import { parseJson } from '../shared/parse-json.ts';
import { readBody } from './body.ts';
import { methodNotAllowed, sendJson, sendRefusal } from './refusal-response.ts';
import { usd } from './usd.ts';

/** What an operator can do with keys. */
export interface KeyAdministration {
  readonly defaultLimits: Limits;
  readonly defaultCompatibility: Compatibility;
  issue(name: string, settings: KeySettings): Promise<IssuedKey | Refusal>;
  /** Books a payment; the same reference is booked once. */
  credit(credit: Credit): Promise<BookedCredit | Refusal>;
  accounts(keyIds: readonly string[]): Promise<ReadonlyMap<string, Account> | Refusal>;
  list(
    limit: number,
    before: string | null,
  ): Promise<{ readonly keys: readonly ApiKey[]; readonly next: string | null } | Refusal>;
}

const maxBodyBytes = 65_536;
const maxNameLength = 100;
const maxReferenceLength = 200;
const defaultPageSize = 50;
const maxPageSize = 200;

/** An amount of USD that is paid in: more than nothing. */
const amount = usd.refine((nanos) => nanos > 0, 'expected more than 0');

const newCredit = z.strictObject({ amount, reference: z.string().min(1).max(maxReferenceLength) });

const newKey = z.strictObject({
  name: z.string().min(1).max(maxNameLength),
  concurrency: z.int().min(1).optional(),
  requestsPerMinute: z.int().min(1).optional(),
  balance: usd.optional(),
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

/** `POST` makes a key and shows it this once; `GET` lists keys, newest first, by pages; `/credits` takes payments. */
export function createKeyRoutes(keys: KeyAdministration): Router {
  const router = Router();
  router.post('/', async (request, response) =>
    answer(response, 201, await createKey(request, response, keys)),
  );
  router.get('/', async (request, response) => answer(response, 200, await listKeys(request, keys)));
  router.all('/', methodNotAllowed('GET, POST'));
  router.post('/:id/credits', async (request, response) =>
    answer(response, 200, await creditKey(request, response, keys)),
  );
  router.all('/:id/credits', methodNotAllowed('POST'));
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
  const body = await readChecked(request, response, newKey);
  if (isRefusal(body)) return body;
  const { name, balance: balanceNanos, ...settings } = body;
  const issued = await keys.issue(name, withoutAbsent({ ...settings, balanceNanos }));
  if (isRefusal(issued)) return issued;
  const account: Account = { balanceNanos: balanceNanos ?? null, heldNanos: 0, spentNanos: 0 };
  return { ...keyObject(issued.key, account, keys), key: issued.secret };
}

async function creditKey(
  request: Request,
  response: Response,
  keys: KeyAdministration,
): Promise<object | Refusal> {
  const body = await readChecked(request, response, newCredit);
  if (isRefusal(body)) return body;
  const keyId = String(request.params['id']);
  const booked = await keys.credit({ keyId, nanos: body.amount, reference: body.reference });
  if (isRefusal(booked)) return booked;
  if (booked.account === null)
    return refuse('unknown_url', 'No key has this id: GET /admin/keys lists them.');
  if (booked.result === 'other amount')
    return refuse('invalid_value', 'This reference stands for another amount: use a new one.', {
      param: 'reference',
    });
  return { id: keyId, booked: booked.result === 'booked', ...accountObject(booked.account) };
}

/** Reads a JSON body and holds it against a schema. */
async function readChecked<Schema extends z.ZodType>(
  request: Request,
  response: Response,
  schema: Schema,
): Promise<z.output<Schema> | Refusal> {
  const bytes = await readBody(request, response, maxBodyBytes);
  if (isRefusal(bytes)) return bytes;
  const body = parseJson(Buffer.from(bytes).toString('utf8'));
  if (body === undefined) return refuse('invalid_json', 'The request body could not be parsed as JSON.');
  const read = schema.safeParse(body);
  return read.success ? read.data : firstFault(read.error);
}

async function listKeys(request: Request, keys: KeyAdministration): Promise<object | Refusal> {
  const read = page.safeParse(request.query);
  if (!read.success) return firstFault(read.error);
  const listed = await keys.list(read.data.limit, read.data.before ?? null);
  if (isRefusal(listed)) return listed;
  const { keys: found, next } = listed;
  const accounts = await keys.accounts(found.map(({ id }) => id));
  if (isRefusal(accounts)) return accounts;
  return { object: 'list', data: found.map((key) => keyObject(key, accounts.get(key.id), keys)), next };
}

function keyObject(
  { id, name, createdAt, limits, compatibility }: ApiKey,
  account: Account | undefined,
  { defaultLimits, defaultCompatibility }: KeyAdministration,
): object {
  const { concurrency, requestsPerMinute } = { ...defaultLimits, ...limits };
  return {
    id,
    name,
    created_at: new Date(createdAt).toISOString(),
    limits: { concurrency, requests_per_minute: requestsPerMinute },
    compatibility: { ...defaultCompatibility, ...compatibility },
    ...(account === undefined ? {} : accountObject(account)),
  };
}

function accountObject({ balanceNanos, heldNanos, spentNanos }: Account): object {
  return {
    balance: balanceNanos === null ? null : formatUsd(balanceNanos),
    held: formatUsd(heldNanos),
    spent: formatUsd(spentNanos),
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
