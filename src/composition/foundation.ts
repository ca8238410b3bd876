import { randomBytes, randomUUID } from 'node:crypto';
import { wantsTraces } from '../config/environment.ts';
import type { Config } from '../config/schema.ts';
import { createMemoryLimiter } from '../coordination/memory.ts';
import type { Clock } from '../domain/ports.ts';
import { createUpstreamHealth } from '../domain/upstream-health.ts';
import type { UpstreamState } from '../domain/circuit.ts';
import type { Proxies } from '../http/passthrough.ts';
import { createKeyManagement } from '../operations/manage-keys.ts';
import { watchBooks } from '../operations/watch-books.ts';
import { createInFlight } from '../pipeline/in-flight.ts';
import { createBooks } from '../storage/books.ts';
import { createKeyDirectory, hashKey } from '../storage/key-directory.ts';
import { keepSettlements } from '../storage/kept-settlements.ts';
import { createSqliteEngine } from '../storage/sqlite/engine.ts';
import { createStore } from '../storage/store.ts';
import type { Log } from '../telemetry/logger.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import { createTelemetry } from '../telemetry/telemetry.ts';
import { createTracing } from '../telemetry/tracing.ts';
import { createTokenCounter } from '../tokens/token-counter.ts';

/** What lives as long as the process, whatever becomes of its config: the books, the limits, what is in progress. */
export type Foundation = ReturnType<typeof layFoundation>;

/** What of the config that is in force now the foundation looks at. */
interface Current {
  readonly lowBalanceNanos: () => number;
  readonly upstreamStates: () => Readonly<Record<string, UpstreamState>>;
}

/** A fresh id of 32 hexadecimal digits. */
export function nextId(): string {
  return randomUUID().replaceAll('-', '');
}

export function layFoundation({ storage }: Config, clock: Clock, log: Log, current: Current) {
  const tracer = createTracing(wantsTraces(process.env), clock, log.fault);
  const engine = createSqliteEngine({
    path: storage.url.slice('sqlite:'.length),
    durability: storage.durability,
  });
  const store = createStore(engine, { nextId, now: () => clock.now() });
  store
    .closeLostRecords()
    .then((count) => {
      if (count === 0) return;
      metrics.holdsExpired(count);
      log.fault('records that an earlier process left open were closed', `${count} of them`);
    })
    .catch((error: unknown) => {
      // A database that can't be opened is told of where the service is started.
      if (engine.broken === null) log.fault('records of an earlier process could not be closed', error);
    });
  const records = keepSettlements(store, clock, log.fault);
  const directory = createKeyDirectory(store, clock, log.fault);
  const inFlight = createInFlight();
  const limiter = createMemoryLimiter(clock);
  const books = createBooks(engine);
  const watch = watchBooks(store, books, clock, {
    lowBalanceNanos: current.lowBalanceNanos,
    isKnown: (requestId) => inFlight.has(requestId) || records.isWaiting(requestId),
    onExpired: (count) => metrics.holdsExpired(count),
    onFault: log.fault,
  });
  const metrics = createMetrics({
    upstreamStates: current.upstreamStates,
    books: () => watch.figures,
    settlementLagMs: () => records.lagMs(),
  });
  return {
    clock,
    log,
    /** In seconds since 1970. */
    startedAt: Math.floor(clock.now() / 1_000),
    engine,
    store,
    records,
    directory,
    inFlight,
    limiter,
    books,
    metrics,
    telemetry: createTelemetry(metrics, log),
    proxies: new Map() as Proxies,
    tracer,
    /** Resolves when requests can be taken; rejects with the reason when the database can't be opened. */
    ready: async () => void (await Promise.all([engine.ready, tracer.ready])),
    health: createUpstreamHealth(clock, (upstream, state) =>
      log.notice(
        state === 'open' ? 'an upstream fails and is left alone' : 'an upstream is used again',
        upstream,
      ),
    ),
    tokens: createTokenCounter(),
    keys: createKeyManagement({
      clock,
      randomBytes,
      hash: hashKey,
      forgetKeys: () => directory.forgetAll(),
      store,
    }),
    /** Closes the books. Throws if there are settlements that the database does not take. */
    async close(): Promise<void> {
      const tracesSent = tracer.close();
      limiter.close();
      await watch.stop();
      const unsettled = await records.flush();
      await engine.close();
      await tracesSent;
      if (unsettled > 0)
        throw new Error(`settlements not written: ${unsettled}. The database did not take them.`);
    },
  };
}
