import { readDatabaseUrl } from '../../config/database-url.ts';
import type { Config } from '../../config/schema/schema.ts';
import { noSpool } from '../../config/schema/storage-schema.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { SettlementSpool } from '../../domain/ports/records.ts';
import type { QuotaStore } from '../../domain/ports/quotas.ts';
import type { SlotStore } from '../../domain/ports/slot-store.ts';
import type { SharedDatabaseState } from '../../domain/ports/shared-changes.ts';
import { sumFaults } from '../../domain/fault-reports.ts';
import { isPostgresUrl } from '../../shared/postgres-url.ts';
import { deferEngine } from '../../storage/deferred-engine.ts';
import type { Engine } from '../../storage/engine.ts';
import type { BegunRecords } from '../../storage/records/record-store.ts';
import type { PostgresEngine } from '../../storage/postgres/engine.ts';
import { readDatabaseId, watchSharedDatabase } from '../../storage/postgres/shared-database.ts';
import { createQuotaStore } from '../../storage/postgres/nodes/quota-store.ts';
import { createSlotStore } from '../../storage/postgres/slots/slot-store.ts';
import { makeFilesPrivate, realDatabasePath, spoolOf } from '../../storage/database-files.ts';
import { createSettlementSpool } from '../../storage/spool/settlement-spool.ts';
import { createSpoolInFolder } from '../../storage/spool/spool-folder.ts';
import { createSqliteEngine } from '../../storage/sqlite/engine.ts';
import type { SqliteOptions } from '../../storage/sqlite/threads.ts';
import type { Log } from '../../telemetry/log/logger.ts';

/** The engine of a config, and what depends on its kind. */
export interface ChosenEngine {
  readonly engine: Engine;
  /** Keeps slots in it under the lease of an owner; `null` for a database that is this process's own. */
  readonly slotsOf: ((owner: () => string, openingOf: BegunRecords['openingOf']) => SlotStore) | null;
  /** Keeps quotas of upstreams' limits in it, likewise. */
  readonly quotasOf: ((owner: () => string) => QuotaStore) | null;
  /** Keeps the settlements that the database does not take; `null` for a process that keeps them in memory alone. */
  readonly spool: SettlementSpool | null;
  /** The state of a database that nodes share, for a readiness probe; `null` for one that is this process's own. */
  readonly sharedState: (() => Promise<SharedDatabaseState>) | null;
  /** Why there is no copy of a database without a file, and what to do instead. */
  readonly whyNoCopy: string;
}

/** What a database that is this process's own calls before units and reads. */
type Beforehand = Pick<SqliteOptions, 'beforeUnit' | 'beforeRead'>;

/** What the others call once all connections to the server are open again. */
interface Afterwards {
  readonly onRegained: () => void;
}

/** Begins to open the database of a config. Throws if the file of its URL can't be read. */
export function chooseEngine(
  storage: Config['storage'],
  clock: Clock,
  log: Log,
  { onRegained, ...beforehand }: Beforehand & Afterwards,
): ChosenEngine {
  const url = readDatabaseUrl(storage.url);
  return isPostgresUrl(url)
    ? usePostgres(url, storage, { clock, onRegained }, log)
    : useSqlite(url.slice('sqlite:'.length), storage, { clock, onFault: log.fault, ...beforehand }, log);
}

function useSqlite(
  name: string,
  { durability, allowMigrated }: Config['storage'],
  tools: Pick<SqliteOptions, 'clock' | 'onFault'> & Beforehand,
  log: Log,
): ChosenEngine {
  const isFile = name !== ':memory:';
  // Lock, spool and copies lie beside the database's real path: a symlink must not give it a second set of them.
  const path = isFile ? realDatabasePath(name) : name;
  const madePrivate = makeFilesPrivate(path);
  if (madePrivate > 0)
    log.notice('database files were readable by other users: permissions tightened', { count: madePrivate });
  return {
    engine: createSqliteEngine({ path, durability, allowMigrated, ...tools }),
    slotsOf: null,
    quotasOf: null,
    spool: isFile ? createSettlementSpool(spoolOf(path), log.fault) : null,
    sharedState: null,
    whyNoCopy: 'The database of this gateway is in memory: it has no file to copy.',
  };
}

function usePostgres(
  url: string,
  { spool }: Config['storage'],
  { clock, onRegained }: Afterwards & Pick<SqliteOptions, 'clock'>,
  log: Log,
): ChosenEngine {
  const watch = {
    lost: sumFaults('the connection to the database was lost', log.fault, clock),
    regained() {
      log.notice('the connection to the database is back');
      onRegained();
    },
  };
  const engine = deferEngine(async () => {
    const { createPostgresEngine } = await import('../../storage/postgres/engine.ts');
    return createPostgresEngine({ url, clock, onFault: log.fault, watch });
  });
  const callFunction: PostgresEngine['callFunction'] = (...call) =>
    engine.use((loaded) => loaded.callFunction(...call));
  return {
    engine,
    slotsOf: (owner, openingOf) =>
      createSlotStore({ callFunction, lookUp: (statements) => engine.lookUp(statements) }, owner, openingOf),
    quotasOf: (owner) => createQuotaStore({ callFunction }, owner),
    spool:
      spool === noSpool
        ? null
        : createSpoolInFolder({
            folder: spool,
            databaseId: () => readDatabaseId(engine, clock),
            onFault: log.fault,
          }),
    sharedState: watchSharedDatabase({
      engine,
      newestCommitMs: () => engine.loaded?.newestCommitMs ?? null,
      shared: ['balances', 'slots', 'starts'],
      clock,
    }),
    whyNoCopy: 'The database of this gateway is on a PostgreSQL server: make a backup of it with pg_dump.',
  };
}
