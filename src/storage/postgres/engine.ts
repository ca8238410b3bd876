import type { QueryConfig } from 'pg';
import type { Clock } from '../../domain/ports/clock.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { StorageError } from '../../domain/storage-refusal.ts';
import type { Engine, Results, Row, Statement } from '../engine.ts';
import type { Migration } from '../migration.ts';
import type { ServerLimits } from './connection/client-config.ts';
import { readTarget } from './connection/connection-target.ts';
import type { ConnectionWatch, KeptConnection } from './connection/connection.ts';
import { openConnections } from './connection/connections.ts';
import type { Lanes } from './connection/connections.ts';
import { repeatUnit } from './connection/failures.ts';
import { readTransaction, snapshotOf, transactionOf } from './connection/queries.ts';
import { readFixedRow } from './database-function.ts';
import type { FunctionCaller } from './database-function.ts';
import { LockedRows } from './locked-rows.ts';
import { unitFunctions } from './unit-functions.ts';

/** How long the server may work on a statement of a unit, and wait in it for a lock, in milliseconds. */
const unitLimits: ServerLimits = { statementMs: 5_000, lockMs: 4_000 };

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string;
  readonly clock: Clock;
  /** Told what went wrong beside the units; nothing refuses them for it. */
  readonly onFault?: ReportFault;
  /** Other limits than the default ones. */
  readonly unitLimits?: ServerLimits;
  /** Is told when the first connection is lost, and when all of them are open again. */
  readonly watch?: ConnectionWatch;
  /** Other steps of the schema than those of this version. */
  readonly steps?: readonly Migration[];
}

/** An engine that many processes may share. */
export interface PostgresEngine extends Engine, FunctionCaller {
  /** When the newest unit was committed that the database has acknowledged, on the monotonic clock; `null` before it. */
  readonly newestCommitMs: number | null;
}

/**
 * Runs units on PostgreSQL, which many nodes may share. Units of statements run one after the other, on all nodes; fixed
 * units run beside them and each other, and wait only for those of the same account. Reads have connections of their
 * own, those on which requests and nodes depend others than long ones, and so has what a process does for itself.
 */
export function createPostgresEngine({
  url,
  clock,
  onFault = () => {},
  unitLimits: limits = unitLimits,
  watch,
  steps,
}: PostgresOptions): PostgresEngine {
  const target = readTarget(url);
  const connections = openConnections({ target, limits, clock }, watch ?? null, onFault, steps);
  const { statements, fixed, own, reads, lookUps, ready } = connections;
  const locked = new LockedRows(clock);
  let closed: StorageError | null = null;
  let isReady = false;
  let newestCommitMs: number | null = null;
  const committed = <Result>(result: Result): Result => {
    newestCommitMs = clock.monotonicMs();
    return result;
  };
  void ready.then(
    () => (isReady = true),
    () => {},
  );
  /** Hands work in at once where that is possible: what is handed in before the close is done. */
  const whenReady = <Done>(work: () => Promise<Done>): Promise<Done> => {
    if (closed !== null) return Promise.reject(closed);
    return isReady ? work() : ready.then(work);
  };
  const callOn = (connection: KeptConnection, query: QueryConfig): Promise<readonly Row[]> =>
    repeatUnit(async () => {
      const [result] = await connection.send([query]);
      return committed((result?.rows ?? []) as readonly Row[]);
    });
  const callFunction: PostgresEngine['callFunction'] = (called, spreadBy, values, rows = null) =>
    whenReady(() => locked.run(rows, () => callOn(fixed.of(spreadBy), called.call(values))));
  return {
    ready,
    callFunction,
    // The database may be away for a while: that is a fault of each unit, and never the end of the process.
    lost: new Promise(() => {}),
    broken: null,
    get newestCommitMs() {
      return newestCommitMs;
    },
    run: (unit) =>
      whenReady(() =>
        repeatUnit(async () => committed(readTransaction(await statements.send(transactionOf(unit))))),
      ),
    async call({ name, takes, spreadBy }, values) {
      const called = unitFunctions.get(name);
      if (called === undefined) throw new StorageError(`no function for ${name}`, 'rejected');
      if (spreadBy === null) return readFixedRow(await whenReady(() => callOn(own, called.call(values))));
      const whose = String(values[Object.keys(takes).indexOf(spreadBy)]);
      // A model may be named like a key: a lock of one's rows says nothing of the other's.
      const rows = `${spreadBy === 'key_id' ? 'account' : 'kinds of records'} of ${whose}`;
      return readFixedRow(await callFunction(called, whose, values, rows));
    },
    read: (asked) => whenReady(() => readSnapshot(reads, asked)),
    lookUp: (asked) => whenReady(() => readSnapshot(lookUps, asked)),
    copy: () => Promise.resolve(null),
    logBytes: null,
    get impaired() {
      return connections.fault?.message ?? null;
    },
    async close() {
      closed = new StorageError('the database is closed', 'closed');
      await locked.drain();
      await connections.close();
    },
  };
}

/** Reads the rows of statements as of one moment. */
async function readSnapshot(lanes: Lanes, asked: readonly Statement[]): Promise<Results> {
  const results = await lanes.leastBusy().send(snapshotOf(asked));
  return (asked.length === 1 ? results : results.slice(1, -1)).map(({ rows }) => rows as readonly Row[]);
}
