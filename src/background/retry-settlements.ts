import { TimeLimit } from '../domain/time-limit.ts';
import type { Wait } from '../domain/time-limit.ts';
import type { OpenedRecord, Reservation } from '../domain/money/consumption.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type {
  OrderedRecords,
  Records,
  RecoverableRecords,
  WatchedRecords,
  SettlementSpool,
} from '../domain/ports/records.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { describeReason, StorageError } from '../domain/storage-refusal.ts';
import { sumFaults } from '../domain/fault-reports.ts';
import { Roster } from '../shared/roster.ts';
import { Beginnings } from './beginnings.ts';
import { isPassing, SettlementQueue } from './settlement-queue.ts';
import { stuckMs, watchWrites } from './write-health.ts';
import type { WriteHealth } from './write-health.ts';

/** Records whose settlements are not lost while the database is full, locked or away. */
export interface KeptSettlements extends WatchedRecords {
  /** How many settlements wait for the database. */
  readonly waiting: number;
  /** Why the database takes no writes, in words that name no file; `null` when it does. */
  readonly writeFault: string | null;
  /** How long the oldest of them has waited, in milliseconds; 0 when none waits. */
  lagMs(): number;
  /** Whether the settlement of a request waits, or may wait: until the spool is read, any may. */
  isWaiting(requestId: string): boolean;
  /** Offers all of them once more; resolves with how many still wait. */
  flush(): Promise<number>;
  /**
   * Makes the settlements that an earlier process left, and then closes its open records; resolves with how many of
   * those there were. Records are begun after it. Rejects when the database or the spool can't be opened.
   */
  recover(): Promise<number>;
  /** Makes a write to see whether the database takes it; rejects when it does not. */
  checkWrites(): Promise<void>;
  /** The beginnings in memory; `null` where other processes write the database, too. */
  readonly beginnings: Beginnings | null;
  /** Closes the spool, once the database is closed; resolves with how many settlements are safe in it, or lost. */
  close(): Promise<{ readonly spooled: number; readonly lost: number }>;
}

/** What settlements are retried with. */
interface RetryOptions {
  readonly clock: Clock;
  readonly onFault: ReportFault;
  /** `null` for a database in memory, which nothing outlives. */
  readonly spool: SettlementSpool | null;
  /** Resolves when the database is open and this process has its lease; rejects when it can't be opened. */
  readonly ready: Promise<void>;
  /** Whether the database can't be used any more. */
  readonly isBroken: () => boolean;
  /**
   * Whether the database is lost: it still takes settlements, which are saved with it, and no new records, which could be gone
   * with the process.
   */
  readonly isLost: () => boolean;
  /** The records of a database that this process alone writes, which are begun in memory; absent where others write it, too. */
  readonly ordered?: OrderedRecords;
}

/**
 * Keeps a settlement that the database does not take, or not in time, in memory and in the spool, and offers it again
 * until it does: the answer is out and has to be paid for. A settlement is made once however often it is offered, so
 * nothing is charged twice.
 */
export function retrySettlements(records: RecoverableRecords, options: RetryOptions): KeptSettlements {
  const { clock, onFault, isBroken, ordered } = options;
  const health = watchWrites(clock, isBroken);
  const beginnings =
    ordered === undefined ? null : new Beginnings({ records: ordered, health, clock, onFault });
  const queue = queueFor(beginnings, records, health, options);
  const recovered = Promise.withResolvers<void>();
  recovered.promise.catch(() => {});
  let isRecovered = false;
  const takesWrites = (): boolean => isRecovered && !queue.waitsForDatabase && health.fault === null;
  const open = boundOpens(
    (record) => (beginnings ?? records).open(record),
    (record) => (takesWrites() ? (beginnings?.begin(record) ?? null) : null),
    recovered.promise,
    health,
    options,
  );
  const settle = createSettle(queue, clock, onFault);
  const settling = new Roster<Promise<number | null>>();

  return {
    open,
    settle(record) {
      const settled = settle(record);
      const place = settling.add(settled);
      const end = (): void => void settling.remove(place);
      settled.then(end, end);
      return settled;
    },
    get waiting() {
      return queue.size;
    },
    get takesWrites() {
      return takesWrites();
    },
    get writeFault() {
      if (!isRecovered) return 'it is being opened';
      if (health.fault !== null) return describeReason(health.fault);
      return queue.waitsForDatabase ? 'settlements wait for it' : null;
    },
    lagMs: () => queue.lagMs(),
    isWaiting: (requestId) => !isRecovered || queue.has(requestId),
    async flush() {
      await beginnings?.written();
      return queue.flush();
    },
    async recover() {
      try {
        const closed = await recover(records, queue, options);
        isRecovered = true;
        recovered.resolve();
        return closed;
      } catch (error) {
        recovered.reject(error);
        throw error;
      }
    },
    checkWrites: () => health.observe(records.checkWrites(), null),
    beginnings,
    async close() {
      queue.leave();
      await Promise.allSettled(settling.all());
      beginnings?.close();
      return queue.close();
    },
  };
}

/** Settlements are made by the beginnings in memory where there are any. */
function queueFor(
  beginnings: Beginnings | null,
  records: RecoverableRecords,
  health: WriteHealth,
  { clock, onFault, spool }: RetryOptions,
): SettlementQueue {
  return new SettlementQueue({
    settle: (record, isRepeated) => beginnings?.settle(record, isRepeated) ?? records.settle(record),
    isSettled: (record) => (beginnings ?? records).isSettled(record),
    health,
    clock,
    onFault,
    spool,
  });
}

/** Makes settlements, and keeps those that the database does not take for now. */
function createSettle(queue: SettlementQueue, clock: Clock, onFault: ReportFault): Records['settle'] {
  const message = 'the database does not take settlements: they are kept and offered again';
  const notTaken = sumFaults(message, onFault, clock);
  // When the database has not answered for so long, it may be stuck.
  const limit = new TimeLimit(
    stuckMs,
    clock,
    () => new StorageError('the database takes too long to make a settlement', 'slow'),
  );
  return async (record) => {
    try {
      return await limit.bound(() => queue.make(record));
    } catch (error) {
      if (!isPassing(error) || !queue.hasRoom) throw error;
      notTaken(error);
      // Waited for before it is kept: it may be made while it is written to the spool.
      const made = record.claim === undefined ? null : queue.made(record.requestId);
      made?.catch(() => {});
      await queue.keep(record, error);
      return made;
    }
  };
}

async function recover(
  records: RecoverableRecords,
  queue: SettlementQueue,
  { ready, onFault }: RetryOptions,
): Promise<number> {
  await ready;
  const damaged = await queue.readSpool();
  if (damaged > 0) onFault('damaged lines of the spool of settlements were left out', `${damaged} of them`);
  // Records whose settlements still wait must stay open; the sweep closes the others.
  if ((await queue.flush()) > 0) return 0;
  return records.closeLostRecords().catch((error: unknown) => {
    // A shutdown that begins during the start is no fault: the next start closes them.
    if (error instanceof StorageError && error.reason === 'closed') throw error;
    onFault('records of an earlier process could not be closed', error);
    return 0;
  });
}

/** How long a request waits for its record to be begun before it is refused, in milliseconds. */
const openLimitMs = 10_000;

/**
 * Begins records, and refuses a request whose database does not answer: a waiting request would hold its slot and its
 * memory, and no cancellation could end it. While the database is stuck and a write is under way, that write is the probe;
 * without one, the next record is. A record that is begun after its request was refused is closed by the sweep, which
 * gives its hold back. `beginInMemory` begins one while the database takes writes, `null` where it can't; `recovered` resolves
 * when records may be begun, and rejects when they never can be.
 */
function boundOpens(
  open: Records['open'],
  beginInMemory: (record: OpenedRecord) => Reservation | null,
  recovered: Promise<void>,
  health: WriteHealth,
  { clock, isLost }: RetryOptions,
): Records['open'] {
  const limit = new TimeLimit(openLimitMs, clock, tooSlow);
  const begin = async (record: OpenedRecord, wait: Wait): Promise<Reservation> => {
    await recovered;
    if (wait.isOver) throw tooSlow();
    if (isLost()) throw new StorageError('the database is lost: no record is begun in it');
    if (health.isStuck && health.isWriting)
      throw health.error === null ? tooSlow() : stillFailing(health.error);
    return health.observe(open(record), record.keyId);
  };
  return async (record) =>
    (isLost() ? null : beginInMemory(record)) ?? limit.bound((wait) => begin(record, wait));
}

/** What failed the last write is why no other is begun while the next one is under way. */
function stillFailing({ message, reason }: StorageError): StorageError {
  return new StorageError(
    `the last write failed, and whether the next one does is not known yet: ${message}`,
    reason,
  );
}

function tooSlow(): StorageError {
  return new StorageError('the database takes too long to begin a record', 'slow');
}
