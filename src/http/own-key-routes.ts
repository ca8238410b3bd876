import { Router } from 'express';
import type { Request, RequestHandler, Response } from 'express';
import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { ApiKey } from '../domain/api-key.ts';
import { limitRefusal } from '../domain/limits.ts';
import type { Limits } from '../domain/limits.ts';
import type { Accounts } from '../domain/ports/accounts.ts';
import type { KeyDirectory } from '../domain/ports/keys.ts';
import type { Limiter } from '../domain/ports/limiter.ts';
import type { RecordPages } from '../domain/ports/record-pages.ts';
import type { TurnQueue } from '../domain/turn-queue.ts';
import type { InFlight } from '../pipeline/in-flight.ts';
import { notRunning } from './admin-records.ts';
import { check, pageQuery, unknownCursor } from './checked-input.ts';
import { authenticateRequest } from './client-connection.ts';
import { idOf, methodNotAllowed, sendAnswer } from './refusal-response.ts';
import { emptyAccount, presentKey } from './present-key.ts';
import type { KeyDefaults } from './present-key.ts';
import { presentRecord } from './present-record.ts';

/**
 * What one key may read of itself: its own pages are read beside every other key's requests. Apart from the limits of
 * the requests, so that looking costs none of them.
 */
const readLimits: Limits = { concurrency: 2, requestsPerMinute: 60, queueWaitMs: 0 };

const reads = { one: 'one read of its own record', many: 'reads of its own record' };

/** What a key's holder can see of it. */
export interface OwnKeyPorts extends RecordPages, Pick<Accounts, 'accounts'> {
  /** Counts the reads of every key. */
  readonly readLimiter: Limiter;
  /**
   * The reads of all keys are made one after the other. Pages are built on the thread that serves every request, and
   * many at a time would hold all answers up for as long as they take together.
   */
  readonly readTurns: TurnQueue;
  readonly keys: KeyDirectory;
  readonly inFlight: InFlight;
  readonly defaults: KeyDefaults;
}

/**
 * `/v1/key`: the caller's own key, its requests, their receipts, and the end of one that runs. None of it costs a start;
 * all but the end of a request counts against the limits of reads.
 */
export function createOwnKeyRoutes(ports: OwnKeyPorts): Router {
  const router = Router({ caseSensitive: true });
  const handle =
    (
      work: (key: ApiKey, request: Request, response: Response) => Promise<object | Refusal>,
    ): RequestHandler =>
    async (request, response) => {
      const key = await authenticateRequest(request, ports.keys);
      sendAnswer(response, 200, isRefusal(key) ? key : await work(key, request, response));
    };
  const handleRead = (work: (key: ApiKey, request: Request) => Promise<object | Refusal>): RequestHandler =>
    handle((key, request, response) => limitRead(ports, key, idOf(response), () => work(key, request)));
  router.get(
    '/v1/key',
    handleRead((key) => showOwn(key, ports)),
  );
  router.all('/v1/key', methodNotAllowed('GET, HEAD'));
  router.get(
    '/v1/key/requests',
    handleRead((key, request) => listOwn(key, request, ports)),
  );
  router.all('/v1/key/requests', methodNotAllowed('GET, HEAD'));
  router.get(
    '/v1/key/requests/:id',
    handleRead(async ({ id }, request) => {
      const record = await ports.findRecord(String(request.params['id']), id);
      return record === null
        ? refuse('request_not_found', 'No request of this key has this id.')
        : presentRecord(record);
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

async function showOwn(key: ApiKey, { accounts, inFlight, defaults }: OwnKeyPorts): Promise<object> {
  const account = (await accounts([key.id])).get(key.id) ?? emptyAccount;
  return presentKey(key, account, inFlight.count(key.id), defaults);
}

async function listOwn(key: ApiKey, request: Request, ports: OwnKeyPorts): Promise<object | Refusal> {
  const page = check(request.query, pageQuery);
  if (isRefusal(page)) return page;
  const found = await ports.listRecords({ keyId: key.id }, page.limit, page.before ?? null);
  if (found === null) return unknownCursor();
  return { object: 'list', data: found.records.map(presentRecord), next: found.next };
}

/** Reads within the limits of the key, or says which of them stands in the way. */
async function limitRead(
  { readLimiter: limiter, readTurns }: OwnKeyPorts,
  { id }: ApiKey,
  requestId: string,
  read: () => Promise<object | Refusal>,
): Promise<object | Refusal> {
  const { signal } = new AbortController();
  const standing = await limiter.acquire(id, requestId, readLimits, signal);
  const refusal = limitRefusal(standing, readLimits, reads);
  if (refusal !== null) return refusal;
  try {
    const found = await readTurns.run(read);
    if (found !== null) return found;
    return refuse('overloaded', 'Too many keys read their records right now. Try again shortly.', {
      retryAfterMs: 1_000,
    });
  } finally {
    await limiter.release(id, requestId);
  }
}
