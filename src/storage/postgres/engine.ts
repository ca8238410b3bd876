import { StorageError } from '../../domain/storage-refusal.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { Engine, FixedUnitName } from '../engine.ts';
import { fixedUnits } from '../fixed-units.ts';
import { KeptConnection } from './connection.ts';
import { readTarget } from './connection-target.ts';
import { functionOf, readFixedRow } from './fixed-functions.ts';
import type { FixedFunction } from './fixed-functions.ts';
import { Lanes } from './lanes.ts';
import { migrate, migrationLimits } from './migrate.ts';
import { readTransaction, snapshotOf, transactionOf } from './queries.ts';
import { repeatUnit } from './repeat-unit.ts';
import type { ConnectionOptions, ServerLimits } from './client-config.ts';

/** How many connections the fixed units share, and the reads. */
const unitLanes = 8;
const readLanes = 2;

/** How long the server may work on a statement of a unit and of a read, and wait in it for a lock, in milliseconds. */
const unitLimits: ServerLimits = { statementMs: 5_000, lockMs: 4_000 };
const readLimits: ServerLimits = { statementMs: 30_000, lockMs: 4_000 };

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string;
  readonly clock: Clock;
  /** Other limits than the default ones. */
  readonly unitLimits?: ServerLimits;
}

/**
 * Runs units on PostgreSQL, which many nodes may share. Units of statements run one after the other, on all nodes; fixed
 * units run beside them and each other, and wait only for those of the same account. Reads have connections of their own.
 */
export function createPostgresEngine({
  url,
  clock,
  unitLimits: limits = unitLimits,
}: PostgresOptions): Engine {
  const options: ConnectionOptions = { target: readTarget(url), limits, isReadOnly: false, clock };
  const setUp = new KeptConnection({ ...options, limits: migrationLimits, isReadOnly: true });
  const statements = new KeptConnection({ ...options, isReadOnly: true });
  const fixed = new Lanes(unitLanes, options);
  const reads = new Lanes(readLanes, { ...options, limits: readLimits, isReadOnly: true });
  const functions = new Map<FixedUnitName, FixedFunction>(
    Object.values(fixedUnits).map((unit) => [unit.name, functionOf(unit)]),
  );
  const connections = [setUp, statements, fixed, reads];
  const closeAll = async (): Promise<void> => {
    await Promise.all(connections.map((connection) => connection.close()));
  };
  let closed: StorageError | null = null;
  const ready = (async () => {
    await setUp.opened;
    await migrate(setUp);
    await setUp.close();
    await Promise.all([statements.opened, fixed.opened, reads.opened]);
  })();
  // An engine that can't be used keeps nothing open.
  ready.catch(closeAll);
  let isReady = false;
  void ready.then(
    () => (isReady = true),
    () => {},
  );
  /** Hands work in at once where that is possible: what is handed in before the close is done. */
  const whenReady = <Done>(work: () => Promise<Done>): Promise<Done> => {
    if (closed !== null) return Promise.reject(closed);
    return isReady ? work() : ready.then(work);
  };
  return {
    ready,
    // The database may be away for a while: that is a fault of each unit, and never the end of the process.
    lost: new Promise(() => {}),
    broken: null,
    run: (unit) =>
      whenReady(() => repeatUnit(async () => readTransaction(await statements.send(transactionOf(unit))))),
    call: ({ name, spreadBy }, values) =>
      whenReady(async () => {
        const called = functions.get(name);
        if (called === undefined) throw new StorageError(`no function for ${name}`, 'rejected');
        return repeatUnit(async () => {
          const [result] = await fixed.of(values[spreadBy]).send([called.call(values)]);
          return readFixedRow(result?.rows ?? []);
        });
      }),
    read: (asked) =>
      whenReady(async () => {
        const results = await reads.leastBusy().send(snapshotOf(asked));
        return (asked.length === 1 ? results : results.slice(1, -1)).map(({ rows }) => rows);
      }),
    copy: () => Promise.resolve(null),
    get impaired() {
      return (statements.fault ?? fixed.fault ?? reads.fault)?.message ?? null;
    },
    async close() {
      closed = new StorageError('the database is closed', 'closed');
      await closeAll();
    },
  };
}
