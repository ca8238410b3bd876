import { randomBytes, randomUUID } from 'node:crypto';
import { wantsTraces } from '../config/environment.ts';
import type { Config } from '../config/schema.ts';
import { createMemoryLimiter } from '../coordination/memory.ts';
import { createTurnQueue } from '../domain/turn-queue.ts';
import type { Clock } from '../domain/ports/clock.ts';
import { createUpstreamHealth } from '../domain/upstream-health.ts';
import type { UpstreamState } from '../domain/circuit.ts';
import type { PassthroughProxies } from '../http/passthrough.ts';
import { prepareAnswers } from '../http/refusal-response.ts';
import { createUnreadWatch } from '../http/unread-watch.ts';
import { createWriteCheck } from '../background/check-writes.ts';
import { createKeyManagement } from '../operations/manage-keys.ts';
import { createMaintenance } from '../operations/maintenance.ts';
import { keepLease } from '../background/keep-lease.ts';
import { monitorLedger } from '../background/monitor-ledger.ts';
import { createInFlight } from '../pipeline/in-flight.ts';
import { createLedgerAudit } from '../storage/ledger-audit.ts';
import { createKeyDirectory, hashKey } from '../storage/key-directory.ts';
import { retrySettlements } from '../background/retry-settlements.ts';
import { makeFilesPrivate, realDatabasePath } from '../storage/private-files.ts';
import { createSettlementSpool } from '../storage/settlement-spool.ts';
import { createSqliteEngine } from '../storage/sqlite/engine.ts';
import { createStore } from '../storage/store.ts';
import { createConnectionReport } from '../telemetry/connection-report.ts';
import type { Log } from '../telemetry/logger.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import { createTelemetry } from '../telemetry/telemetry.ts';
import { createTracing } from '../telemetry/tracing.ts';
import { createTokenCounter } from '../tokens/token-counter.ts';

/** What lives as long as the process, whatever becomes of its config: the books, the limits, what is in progress. */
export type ProcessServices = ReturnType<typeof createProcessServices>;

/** What of the config that is in force now the foundation looks at. */
interface Current {
  readonly lowBalanceNanos: () => number;
  readonly upstreamStates: () => Readonly<Record<string, UpstreamState>>;
}

/** A fresh id of 32 hexadecimal digits. */
export function nextId(): string {
  return randomUUID().replaceAll('-', '');
}

export function createProcessServices({ storage }: Config, clock: Clock, log: Log, current: Current) {
  const tracer = createTracing(wantsTraces(process.env), clock, log.fault);
  const name = storage.url.slice('sqlite:'.length);
  const isFile = name !== ':memory:';
  // Everything that belongs to a database lies beside its real path, whichever symlink leads to it.
  const path = isFile ? realDatabasePath(name) : name;
  const madePrivate = makeFilesPrivate(path);
  if (madePrivate > 0)
    log.notice(
      `files of the database could be read by other users: ${madePrivate} are now their owner's alone`,
    );
  const engine = createSqliteEngine({ path, durability: storage.durability, clock, onFault: log.fault });
  let isLost = false;
  void engine.lost.then(() => (isLost = true));
  const store = createStore(engine, { nextId, now: () => clock.now(), report: log.fault });
  const records = retrySettlements(store, {
    clock,
    onFault: log.fault,
    spool: isFile ? createSettlementSpool(path, log.fault) : null,
    ready: engine.ready,
    isBroken: () => engine.broken !== null,
    isLost: () => isLost,
  });
  const recovered = records.recover().then((count) => {
    if (count === 0) return;
    metrics.holdsExpired(count);
    log.fault('records that an earlier process left open were closed', `${count} of them`);
  });
  // `ready()` reports a database that can't be opened.
  recovered.catch(() => {});
  const directory = createKeyDirectory(store, clock, {
    onFault: log.fault,
    onShed: () => metrics.keyLookUpShed(),
  });
  const inFlight = createInFlight();
  const limiter = createMemoryLimiter(clock);
  const readLimiter = createMemoryLimiter(clock);
  const lease = keepLease(store, clock, log.fault);
  const ledger = createLedgerAudit(engine);
  const monitor = monitorLedger(store, ledger, clock, {
    lowBalanceNanos: current.lowBalanceNanos,
    isPending: (requestId) => inFlight.has(requestId) || records.isWaiting(requestId),
    onExpired: (count) => metrics.holdsExpired(count),
    onFault: log.fault,
  });
  const metrics = createMetrics({
    upstreamStates: current.upstreamStates,
    books: () => monitor.figures,
    settlementLagMs: () => records.lagMs(),
    logLinesDropped: () => log.droppedLines,
  });
  const connectionReport = createConnectionReport(metrics, log, clock);
  return {
    clock,
    log,
    prepare: prepareAnswers(nextId, createUnreadWatch(clock)),
    onConnectionRefused: connectionReport.refused,
    /** In seconds since 1970. */
    startedAt: Math.floor(clock.now() / 1_000),
    engine,
    store,
    records,
    writes: createWriteCheck(records, clock, (fault) => {
      if (fault === null) log.notice('the database takes writes again');
      else log.fault('the database does not take writes', fault);
    }),
    directory,
    inFlight,
    limiter,
    readLimiter,
    readTurns: createTurnQueue(clock),
    maintenance: createMaintenance(ledger, () => engine.copy(), clock),
    metrics,
    telemetry: createTelemetry(metrics, log),
    proxies: new Map() as PassthroughProxies,
    tracer,
    /**
     * Resolves when requests can be taken: the database is open, what an earlier process left in the spool is settled,
     * and its open records are closed. Rejects with the reason when the database or the spool can't be opened.
     */
    ready: async () => void (await Promise.all([recovered, tracer.ready])),
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
    /**
     * Closes the books. Throws if settlements are lost, which neither the database nor the spool took, and if the
     * database could not be saved or closed.
     */
    async close(): Promise<void> {
      const tracesSent = tracer.close();
      limiter.close();
      readLimiter.close();
      connectionReport.close();
      await Promise.all([monitor.stop(), lease.stop()]);
      await records.flush();
      const failures: unknown[] = [];
      await engine.close().catch((error: unknown) => void failures.push(error));
      const { spooled, lost } = await records.close();
      await tracesSent;
      if (spooled > 0)
        log.fault('settlements wait in the spool, and are made at the next start', `${spooled} of them`);
      if (lost > 0)
        failures.push(new Error(`settlements lost: ${lost}. Neither the database nor the spool took them.`));
      for (const failure of failures.slice(1)) log.fault('the books were not closed cleanly', failure);
      if (failures.length > 0) throw failures[0];
    },
  };
}
