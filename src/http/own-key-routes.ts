import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { ApiKey } from '../domain/keys/api-key.ts';
import { limitRefusal } from '../domain/limits/limits.ts';
import type { Limits } from '../domain/limits/limits.ts';
import type { Accounts } from '../domain/ports/accounts.ts';
import type { KeyDirectory } from '../domain/ports/key-store.ts';
import type { Limiter } from '../domain/ports/limiter.ts';
import type { RecordPages } from '../domain/ports/records.ts';
import type { Retention } from '../domain/ports/retention.ts';
import type { Statements } from '../operations/statements.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import type { Groups } from '../domain/limits/groups.ts';
import { presentGroup, presentKey } from './present/key.ts';
import type { ReadBudgetUse, ReadRefused } from '../operations/key-use.ts';
import type { TurnQueue } from '../domain/limits/turn-queue.ts';
import type { RunningRequests } from '../domain/ports/running-requests.ts';
import { check, pageQuery, pathIdOf, readQuery, readWholeQuery, unknownCursor } from './checked-input.ts';
import type { ClientAddresses } from './heads/client-addresses.ts';
import { authenticateRequest } from './http-client-connection.ts';
import type { KeyDefaults } from './present/key.ts';
import { presentCancellation, unknownRequest } from './unknown-ids.ts';
import { presentList } from './present/list.ts';
import { presentReceipt } from './present/record.ts';
import type { UpstreamsInReceipts } from './present/record.ts';
import { requestIdOf } from './heads/request-id.ts';
import { addRoutes } from './route-table.ts';
import type { Route, RouteAnswer } from './route-table.ts';
import { answerStatement, makeStatement } from './statement-routes.ts';
import { answerUsage, ownUsageQuery, readOwnUsage } from './usage.ts';
import type { UsageReads } from './usage.ts';
import { createRouter } from './router.ts';
import type { Request, Response, Router } from './router.ts';

/**
 * The limits of a key's reads of its own record. They are separate from the limits of its requests, so that reads use
 * up none of those.
 */
const readLimits: Limits = { concurrency: 2, requestsPerMinute: 60, queueWaitMs: 0 };

/** `retry-after` where the reads of all keys together are too many, in milliseconds: as long as one may wait for its turn. */
const busyReadsRetryMs = 10_000;

const reads = { one: 'one read of its own record', many: 'reads of its own record', canWait: false };

/** The dependencies of the routes for a key's holder. */
export interface OwnKeyPorts
  extends RecordPages, Pick<Accounts, 'accounts'>, Pick<Retention, 'removedBefore'> {
  /** Limits the reads of each key. */
  readonly readLimiter: Limiter;
  /**
   * Makes the reads of all keys one after another, those of each key in turn, with rests between them: pages are built on the
   * thread that serves every request, and without rests they would delay all answers for as long as they are asked for.
   */
  readonly readTurns: TurnQueue;
  readonly keys: KeyDirectory;
  readonly usage: UsageReads;
  readonly addresses: ClientAddresses;
  readonly groups: Groups;
  readonly budgetUse: ReadBudgetUse;
  readonly refusedToday: ReadRefused;
  readonly running: RunningRequests;
  readonly onFault: ReportFault;
  readonly defaults: KeyDefaults;
  readonly upstreams: UpstreamsInReceipts;
  readonly statements: Statements;
}

/**
 * The routes under `/v1/key`: the caller's own key, its requests, their receipts, and cancellation of a running one.
 * None of them counts against the requests per minute; all but the cancellation count against the read limits.
 */
export function createOwnKeyRoutes(ports: OwnKeyPorts): Router {
  const handle =
    (work: (key: ApiKey, request: Request, response: Response) => Promise<RouteAnswer>): Route =>
    async (request, response) => {
      const key = await authenticateRequest(request, ports);
      return isRefusal(key) ? key : work(key, request, response);
    };
  const readOf = <Found extends object>(
    key: ApiKey,
    response: Response,
    read: () => Promise<Found | Refusal>,
  ): Promise<Found | Refusal> => limitRead(ports, key, requestIdOf(response), read);
  const handleRead = (work: (key: ApiKey, request: Request) => Promise<object | Refusal>): Route =>
    handle((key, request, response) => readOf(key, response, () => work(key, request)));
  return addRoutes(createRouter({ caseSensitive: true }), {
    'GET, HEAD /v1/key': handleRead((key) => presentOwn(key, ports)),
    'GET, HEAD /v1/key/usage': handle(async (key, request, response) => {
      const query = readWholeQuery(request, ownUsageQuery, 'Usage');
      const page = await readOf(key, response, () => readOwnUsage(query, key.id, ports.usage));
      return answerUsage(request, response, page);
    }),
    'GET, HEAD /v1/key/statement': handle(async (key, request, response) => {
      const make = () => makeStatement(request, key, ports.statements);
      return answerStatement(response, await readOf(key, response, make));
    }),
    'GET, HEAD /v1/key/requests': handleRead((key, request) => listOwn(key, request, ports)),
    'GET, HEAD /v1/key/requests/:id': handleRead(async ({ id }, request) => {
      const record = await ports.findRecord(pathIdOf(request), id);
      return record === null
        ? unknownRequest('No request of this key has this id.', ports)
        : presentReceipt(record, ports.upstreams);
    }),
    'POST /v1/key/requests/:id/cancel': handle(async ({ id }, request) => {
      const requestId = pathIdOf(request);
      return presentCancellation(requestId, await ports.running.cancel(requestId, id));
    }),
  });
}

async function presentOwn(
  key: ApiKey,
  { accounts, budgetUse, refusedToday, groups, running, defaults }: OwnKeyPorts,
): Promise<object> {
  const group = key.group === null ? undefined : groups.get(key.group);
  const shared = group === undefined ? [] : [group];
  const ids = [key, ...shared].map(({ id }) => id);
  const [found, budgets, inFlight, refused] = await Promise.all([
    accounts([key.id]),
    budgetUse([key, ...shared]),
    running.count(ids),
    refusedToday([key.id]),
  ]);
  const useOf = (id: string) => ({ budget: budgets.get(id), inFlight: inFlight.get(id) });
  const use = { account: found.get(key.id), refused: refused.get(key.id), ...useOf(key.id) };
  const shown = presentKey(key, use, defaults);
  const [ofGroup = null] = shared.map((one) => presentGroup(one, useOf(one.id)));
  return { ...shown, group: ofGroup };
}

async function listOwn(key: ApiKey, request: Request, ports: OwnKeyPorts): Promise<object | Refusal> {
  const page = check(readQuery(request, pageQuery), pageQuery);
  if (isRefusal(page)) return page;
  const found = await ports.listRecords({ keyId: key.id }, page.limit, page.before ?? null);
  if (found === null) return unknownCursor();
  return presentList(
    found.records.map((record) => presentReceipt(record, ports.upstreams)),
    found.next,
  );
}

/** Reads within the key's read limits; returns the refusal of an exceeded limit. */
async function limitRead<Found extends object>(
  { readLimiter: limiter, readTurns, onFault }: OwnKeyPorts,
  { id }: ApiKey,
  requestId: string,
  read: () => Promise<Found | Refusal>,
): Promise<Found | Refusal> {
  const { signal } = new AbortController();
  const decision = await limiter.acquire(id, requestId, readLimits, signal);
  const refusal = limitRefusal(decision, readLimits, reads);
  if (refusal !== null) {
    await readTurns.holdBack();
    return refusal;
  }
  try {
    const found = await readTurns.run(id, read);
    if (found !== null) return found;
    await readTurns.holdBack();
    return refuse(
      'rate_limit_exceeded',
      'More reads of keys’ own records wait than this server makes in ten seconds, so this one was not made. Try again later, and less often: requests for text are not affected.',
      { retryAfterMs: busyReadsRetryMs, cause: 'too many reads of /v1/key wait for their turn' },
    );
  } finally {
    // A limiter that fails here must not turn a good answer into an error.
    await limiter.release(id, requestId).catch((error: unknown) => onFault('slot not released', error));
  }
}
