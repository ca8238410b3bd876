import { Router } from 'express';
import type { Request, RequestHandler, Response } from 'express';
import { z } from 'zod';
import { isRefusal } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { duration, instant, keyName, modelsOfKey, usd } from '../shared/schema-values.ts';
import { samplingPolicies, unknownFieldPolicies } from '../protocol/contract/compatibility.ts';
import { ownReferences } from '../domain/account.ts';
import type { ApiKey } from '../domain/api-key.ts';
import type { IssuedKey, KeyManagement } from '../operations/manage-keys.ts';
import { check, pageQuery, pathIdOf, readChecked, unknownCursor } from './checked-input.ts';
import { methodNotAllowed } from './fallback-handlers.ts';
import { sendAnswer } from './respond.ts';
import { emptyAccount, presentAccount, presentManagedKey } from './present-key.ts';
import type { KeyDefaults } from './present-key.ts';
import { presentList } from './present-list.ts';

/** The dependencies of the key routes. */
export interface KeyAdministration {
  readonly defaults: KeyDefaults;
  readonly keys: KeyManagement;
  /** How many requests some keys have in progress, by the keys' ids. */
  readonly countInFlight: (keyIds: readonly string[]) => Promise<ReadonlyMap<string, number>>;
}

const maxReferenceLength = 200;

const atLeastOne = z.int().min(1);
const compatibility = z.strictObject({
  sampling: z.enum(samplingPolicies).optional(),
  unknownFields: z.enum(unknownFieldPolicies).optional(),
  responsesDone: z.boolean().optional(),
});
const newKey = z.strictObject({
  name: keyName,
  concurrency: atLeastOne.optional(),
  requestsPerMinute: atLeastOne.optional(),
  queueWait: duration.optional(),
  balance: usd.optional(),
  models: modelsOfKey.nullish().transform((list) => list ?? undefined),
  expiresAt: instant.nullish().transform((moment) => moment ?? undefined),
  compatibility: compatibility.optional(),
});
const changedKey = z.strictObject({
  name: keyName.optional(),
  concurrency: atLeastOne.nullish(),
  requestsPerMinute: atLeastOne.nullish(),
  queueWait: duration.nullish(),
  models: modelsOfKey.nullish(),
  expiresAt: instant.nullish(),
  compatibility: compatibility.optional(),
});
const rotation = z.strictObject({ grace: duration.default(0) });
const payment = z.strictObject({
  amount: usd.refine((nanos) => nanos > 0, 'expected more than 0'),
  reference: z
    .string()
    .min(1)
    .max(maxReferenceLength)
    .refine(
      (text) => !text.startsWith(ownReferences),
      `expected a reference that does not begin with ${ownReferences}`,
    ),
});

/** The routes under `/admin/keys`: create, list, read, change, revoke, rotate and credit keys. */
export function createKeyRoutes(administration: KeyAdministration): Router {
  const { keys } = administration;
  const router = Router({ mergeParams: true });
  const present = async (key: ApiKey | Refusal): Promise<object | Refusal> =>
    isRefusal(key) ? key : ((await presentAll([key], administration))[0] ?? {});
  const presentIssued = async (issued: IssuedKey | Refusal): Promise<object | Refusal> =>
    isRefusal(issued) ? issued : { ...(await present(issued.key)), key: issued.secret };

  router.get(
    '/',
    handle(200, (request) => listKeys(request, administration)),
  );
  router.post(
    '/',
    handle(201, async (request, response) => {
      const body = await readChecked(request, response, newKey);
      if (isRefusal(body)) return body;
      const { name: given, balance: balanceNanos, queueWait: queueWaitMs, ...settings } = body;
      return presentIssued(
        await keys.issue(given, withoutAbsent({ ...settings, queueWaitMs, balanceNanos })),
      );
    }),
  );
  router.all('/', methodNotAllowed('GET, POST'));

  router.get(
    '/:id',
    handle(200, async (request) => present(await keys.show(pathIdOf(request)))),
  );
  router.patch(
    '/:id',
    handle(200, async (request, response) => {
      const body = await readChecked(request, response, changedKey);
      if (isRefusal(body)) return body;
      const { queueWait: queueWaitMs, ...changes } = body;
      return present(await keys.change(pathIdOf(request), withoutAbsent({ ...changes, queueWaitMs })));
    }),
  );
  router.delete(
    '/:id',
    handle(200, async (request) => present(await keys.revoke(pathIdOf(request)))),
  );
  router.all('/:id', methodNotAllowed('GET, PATCH, DELETE'));

  router.post(
    '/:id/rotate',
    handle(200, async (request, response) => {
      const body = await readChecked(request, response, rotation);
      return isRefusal(body) ? body : presentIssued(await keys.rotate(pathIdOf(request), body.grace));
    }),
  );
  router.all('/:id/rotate', methodNotAllowed('POST'));

  router.post(
    '/:id/credits',
    handle(200, async (request, response) => {
      const body = await readChecked(request, response, payment);
      if (isRefusal(body)) return body;
      const keyId = pathIdOf(request);
      const paid = await keys.credit({ keyId, nanos: body.amount, reference: body.reference });
      return isRefusal(paid) ? paid : { id: keyId, booked: paid.booked, ...presentAccount(paid.account) };
    }),
  );
  router.all('/:id/credits', methodNotAllowed('POST'));
  return router;
}

async function listKeys(request: Request, administration: KeyAdministration): Promise<object | Refusal> {
  const page = check(request.query, pageQuery);
  if (isRefusal(page)) return page;
  const found = await administration.keys.list(page.limit, page.before ?? null);
  if (found === null) return unknownCursor();
  return presentList(await presentAll(found.keys, administration), found.next);
}

async function presentAll(
  found: readonly ApiKey[],
  { keys, defaults, countInFlight }: KeyAdministration,
): Promise<readonly object[]> {
  const ids = found.map(({ id }) => id);
  const [accounts, inFlight] = await Promise.all([keys.accounts(ids), countInFlight(ids)]);
  return found.map((key) =>
    presentManagedKey(key, accounts.get(key.id) ?? emptyAccount, inFlight.get(key.id) ?? 0, defaults),
  );
}

function handle(
  status: number,
  work: (request: Request, response: Response) => Promise<object | Refusal>,
): RequestHandler {
  return async (request, response) => sendAnswer(response, status, await work(request, response));
}

/** Drops keys with the value `undefined`: zod keeps an absent optional key as one, which would override the default. */
function withoutAbsent(settings: object): object {
  return JSON.parse(JSON.stringify(settings)) as object;
}
