import { createWriteCheck } from '../background/check-writes.ts';
import type { WriteCheck } from '../background/check-writes.ts';
import { retrySettlements } from '../background/retry-settlements.ts';
import type { KeptSettlements } from '../background/retry-settlements.ts';
import type { Config } from '../config/schema/schema.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { LedgerAudit } from '../domain/ports/ledger-audit.ts';
import type { Engine } from '../storage/engine.ts';
import { createKeyDirectory } from '../storage/key-directory.ts';
import type { ManagedKeyDirectory } from '../storage/key-directory.ts';
import { createLedgerAudit } from '../storage/ledger-audit.ts';
import { makeFilesPrivate, realDatabasePath } from '../storage/private-files.ts';
import { createSettlementSpool } from '../storage/settlement-spool.ts';
import { createSqliteEngine } from '../storage/sqlite/engine.ts';
import { createStore } from '../storage/store.ts';
import type { Store } from '../storage/store.ts';
import type { Log } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { nextId } from './next-id.ts';

/** The database, and what reads and writes it. */
export interface StorageServices {
  readonly engine: Engine;
  readonly store: Store;
  /** Consumption records whose settlements outlive an outage of the database. */
  readonly records: KeptSettlements;
  /** Whether the database accepts writes, for the readiness probe. */
  readonly writeCheck: WriteCheck;
  readonly keyDirectory: ManagedKeyDirectory;
  readonly ledgerAudit: LedgerAudit;
  /**
   * Resolves when the database is open, the settlements that an earlier process left in the spool are made, and its open
   * records are closed. Rejects when the database or the spool can't be opened.
   */
  readonly recovered: Promise<void>;
  /**
   * Offers the waiting settlements once more and closes the database and the spool. Throws if settlements are lost, or if
   * the database could not be saved or closed.
   */
  close(): Promise<void>;
}

/** Begins to open the database of the config; `recovered` resolves when it can be used. */
export function openStorage(
  { url, durability }: Config['storage'],
  clock: Clock,
  log: Log,
  metrics: Pick<Metrics, 'holdsExpired' | 'keyLookUpShed'>,
): StorageServices {
  const name = url.slice('sqlite:'.length);
  const isFile = name !== ':memory:';
  // Lock, spool and copies lie beside the database's real path: a symlink must not give it a second set of them.
  const path = isFile ? realDatabasePath(name) : name;
  const madePrivate = makeFilesPrivate(path);
  if (madePrivate > 0)
    log.notice('database files were readable by other users: permissions tightened', { count: madePrivate });
  const engine = createSqliteEngine({ path, durability, clock, onFault: log.fault });
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
    log.notice('closed requests left open by a previous process', { count });
  });
  // Awaited by `ready` only: a rejection before that must not end the process as unhandled.
  recovered.catch(() => {});
  return {
    engine,
    store,
    records,
    recovered,
    writeCheck: createWriteCheck(records, clock, (fault) => {
      if (fault === null) log.notice('database accepts writes again');
      else log.fault('database does not accept writes', fault);
    }),
    keyDirectory: createKeyDirectory(store, clock, {
      onFault: log.fault,
      onShed: () => metrics.keyLookUpShed(),
    }),
    ledgerAudit: createLedgerAudit(engine),
    close: () => closeStorage(engine, records, log),
  };
}

async function closeStorage(engine: Engine, records: KeptSettlements, log: Log): Promise<void> {
  await records.flush();
  const failures: unknown[] = [];
  await engine.close().catch((error: unknown) => void failures.push(error));
  const { spooled, lost } = await records.close();
  if (spooled > 0)
    log.fault('settlements left in the spool for the next start', 'the database did not accept them', {
      count: spooled,
    });
  if (lost > 0)
    failures.push(new Error(`${lost} settlements lost: neither the database nor the spool accepted them`));
  for (const failure of failures.slice(1)) log.fault('closing the database failed', failure);
  if (failures.length > 0) throw failures[0];
}
