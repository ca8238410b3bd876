import { Router } from 'express';
import type { Request, RequestHandler } from 'express';
import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Account } from '../domain/account.ts';
import type { ApiKey } from '../domain/api-key.ts';
import type { ConsumptionRecord, RecordFilter, RecordPage } from '../domain/consumption.ts';
import type { KeyDirectory } from '../domain/ports.ts';
import { authenticate } from '../pipeline/authenticate.ts';
import type { InFlight } from '../pipeline/in-flight.ts';
import { notRunning } from './admin-records.ts';
import { check, pageQuery } from './checked-input.ts';
import { findDuplicateHeader } from './http-client.ts';
import { methodNotAllowed, sendAnswer } from './refusal-response.ts';
import { emptyAccount, shownKey } from './shown-key.ts';
import type { KeyDefaults } from './shown-key.ts';
import { shownRecord } from './shown-record.ts';

/** What a key's holder can see of it. */
export interface HolderPorts {
  readonly keys: KeyDirectory;
  readonly inFlight: InFlight;
  readonly defaults: KeyDefaults;
  readonly accounts: (keyIds: readonly string[]) => Promise<ReadonlyMap<string, Account>>;
  listRecords(filter: RecordFilter, limit: number, before: string | null): Promise<RecordPage>;
  findRecord(requestId: string, keyId: string): Promise<ConsumptionRecord | null>;
}

/** `/v1/key`: the caller's own key, its requests, their receipts, and the end of one that runs. Costs no start. */
export function createHolderRoutes(ports: HolderPorts): Router {
  const router = Router({ caseSensitive: true });
  const handle =
    (work: (key: ApiKey, request: Request) => Promise<object | Refusal>): RequestHandler =>
    async (request, response) => {
      const key =
        findDuplicateHeader(request) ?? (await authenticate(request.headers.authorization, ports.keys));
      sendAnswer(response, 200, isRefusal(key) ? key : await work(key, request));
    };
  router.get(
    '/v1/key',
    handle((key) => showOwn(key, ports)),
  );
  router.all('/v1/key', methodNotAllowed('GET, HEAD'));
  router.get(
    '/v1/key/requests',
    handle((key, request) => listOwn(key, request, ports)),
  );
  router.all('/v1/key/requests', methodNotAllowed('GET, HEAD'));
  router.get(
    '/v1/key/requests/:id',
    handle(async ({ id }, request) => {
      const record = await ports.findRecord(String(request.params['id']), id);
      return record === null
        ? refuse('request_not_found', 'No request of this key has this id.')
        : shownRecord(record);
    }),
  );
  router.all('/v1/key/requests/:id', methodNotAllowed('GET, HEAD'));
  router.post(
    '/v1/key/requests/:id/cancel',
    handle(async ({ id }, request) => {
      const requestId = String(request.params['id']);
      return ports.inFlight.cancel(requestId, id) ? { request_id: requestId, cancelled: true } : notRunning();
    }),
  );
  router.all('/v1/key/requests/:id/cancel', methodNotAllowed('POST'));
  return router;
}

async function showOwn(key: ApiKey, { accounts, inFlight, defaults }: HolderPorts): Promise<object> {
  const account = (await accounts([key.id])).get(key.id) ?? emptyAccount;
  return shownKey(key, account, inFlight.count(key.id), defaults);
}

async function listOwn(key: ApiKey, request: Request, ports: HolderPorts): Promise<object | Refusal> {
  const page = check(request.query, pageQuery);
  if (isRefusal(page)) return page;
  const { records, next } = await ports.listRecords({ keyId: key.id }, page.limit, page.before ?? null);
  return { object: 'list', data: records.map(shownRecord), next };
}
