import type { SettledRecord } from '../domain/consumption.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { RecoverableRecords, WatchedRecords } from '../domain/ports/records.ts';
import type { SettlementSpool } from '../domain/ports/settlement-spool.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { StorageError, describeReason } from '../domain/storage-refusal.ts';
import { sumFaults } from '../domain/summed-fault.ts';
import { within } from '../domain/within.ts';
import { boundOpens } from './bounded-open.ts';
import { stuckMs, watchWrites } from './write-health.ts';

/** How soon settlements that the database did not take are offered to it again, in milliseconds. */
const retryMs = 1_000;

/** How many are kept in memory; new requests are refused long before, since they can't be recorded. */
const maxKept = 100_000;

/** How many are offered at once: they share a commit. */
const offeredAtOnce = 500;

/** Records whose settlements are not lost while the database is full, locked or away. */
export interface KeptSettlements extends WatchedRecords {
  /** Settlements that wait for the database. */
  readonly waiting: number;
  /** Why the database takes no writes, in words that name no file; `null` when it does. */
  readonly writeFault: string | null;
  /** How long the oldest of them has waited, in milliseconds; 0 when none waits. */
  lagMs(): number;
  /** Whether that of one request does, or may: until the spool is read, any may. */
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
  /** Closes the spool, once the database is closed. */
  close(): Promise<{ readonly spooled: number; readonly lost: number }>;
}

/** What settlements are kept with. */
export interface Keeping {
  readonly clock: Clock;
  readonly onFault: ReportFault;
  /** `null` for a database in memory, which nothing outlives. */
  readonly spool: SettlementSpool | null;
  /** Resolves when the database is open, rejects when it can't be. */
  readonly ready: Promise<void>;
  /** Whether the database can't be used any more. */
  readonly isBroken: () => boolean;
  /** Whether it is lost: it takes settlements still, which are saved with it, and no new records. */
  readonly isLost: () => boolean;
}

/**
 * Keeps a settlement that the database does not take, or not in time, in memory and in the spool, and offers it again until it does:
 * the answer is out and has to be paid for. A settlement is made once however often it is offered, so nothing is
 * charged twice.
 */
export function retrySettlements(
  records: RecoverableRecords,
  { clock, onFault, spool, ready, isBroken, isLost }: Keeping,
): KeptSettlements {
  /** By request; each stays until it is made, so that the sweep does not take its record for an orphan. */
  const waiting = new Map<string, SettledRecord>();
  /** Those of them that are safe in the spool. */
  const spooled = new Set<string>();
  const health = watchWrites(clock, isBroken);
  const recovered = Promise.withResolvers<void>();
  recovered.promise.catch(() => {});
  const open = boundOpens((record) => records.open(record), {
    clock,
    health,
    recovered: recovered.promise,
    isLost,
  });
  const settling = new Set<Promise<void>>();
  /** Settlements that the database has and has not answered, by request: they are not offered a second time. */
  const underWay = new Map<string, Promise<void>>();
  let isRecovered = false;
  let waitingSinceMs = 0;
  let flushing: Promise<number> | null = null;
  let cancelRetry: (() => void) | null = null;
  /** Whether anything was appended to the spool since it was emptied. */
  let spoolHolds = false;

  const notTaken = sumFaults(
    'the database does not take settlements: they are kept and offered again',
    onFault,
    clock,
  );
  const notMade = sumFaults('a kept settlement could not be made', onFault, clock);
  const notSpooled = sumFaults('a settlement could not be written to the spool', onFault, clock);

  const keep = (record: SettledRecord): void => {
    if (waiting.size === 0) waitingSinceMs = clock.monotonicMs();
    waiting.set(record.requestId, record);
  };
  const retryLater = (): void => {
    cancelRetry ??= clock.schedule(retryMs, () => {
      cancelRetry = null;
      void flush();
    });
  };
  const flush = (): Promise<number> => (flushing ??= offerAll().finally(() => (flushing = null)));

  /** Stops at the first commit of which nothing is taken: the others would not be, either. */
  const offerAll = async (): Promise<number> => {
    const offered = [...waiting.values()];
    for (let at = 0; at < offered.length; at += offeredAtOnce) {
      const done = await Promise.all(offered.slice(at, at + offeredAtOnce).map(offer));
      if (!done.includes(true)) break;
    }
    if (waiting.size === 0 && spoolHolds) await emptySpool();
    if (waiting.size > 0) retryLater();
    return waiting.size;
  };
  const make = (record: SettledRecord): Promise<void> => {
    const { requestId } = record;
    const made = health.observe(() => records.settle(record)).finally(() => underWay.delete(requestId));
    underWay.set(requestId, made);
    return made;
  };
  /** Resolves with whether it waits no longer. */
  const offer = async (record: SettledRecord): Promise<boolean> => {
    try {
      await (underWay.get(record.requestId) ?? make(record));
    } catch (error) {
      if (isPassing(error)) return false;
      // A thread can die between its commit and its answer: the settlement is made then.
      if (!(await records.isSettled(record).catch(() => false))) notMade(error);
    }
    waiting.delete(record.requestId);
    return true;
  };
  const emptySpool = async (): Promise<void> => {
    spooled.clear();
    spoolHolds = false;
    await spool?.clear().catch(notSpooled);
  };
  const settle = async (record: SettledRecord): Promise<void> => {
    try {
      await inTime(make(record), clock);
    } catch (error) {
      if (!isPassing(error) || waiting.size >= maxKept) throw error;
      notTaken(error);
      keep(record);
      retryLater();
      if (spool === null) return;
      spoolHolds = true;
      await spool.append(record).then(() => spooled.add(record.requestId), notSpooled);
    }
  };
  const recover = async (): Promise<number> => {
    await ready;
    if (spool !== null) {
      const { records: left, damaged } = await spool.open();
      if (damaged > 0)
        onFault('damaged lines of the spool of settlements were left out', `${damaged} of them`);
      spoolHolds = left.length + damaged > 0;
      for (const record of left) {
        keep(record);
        spooled.add(record.requestId);
      }
      // Records whose settlements still wait must stay open; the sweep closes the others.
      if ((await flush()) > 0) return 0;
    }
    return records.closeLostRecords().catch((error: unknown) => {
      onFault('records of an earlier process could not be closed', error);
      return 0;
    });
  };

  return {
    open,
    async settle(record) {
      const settled = settle(record);
      settling.add(settled);
      await settled.finally(() => settling.delete(settled));
    },
    get waiting() {
      return waiting.size;
    },
    get takesWrites() {
      return isRecovered && waiting.size === 0 && health.fault === null;
    },
    get writeFault() {
      if (!isRecovered) return 'it is being opened';
      if (health.fault !== null) return describeReason(health.fault);
      return waiting.size > 0 ? 'settlements wait for it' : null;
    },
    lagMs: () => (waiting.size === 0 ? 0 : clock.monotonicMs() - waitingSinceMs),
    isWaiting: (requestId) => !isRecovered || waiting.has(requestId),
    flush,
    async recover() {
      try {
        const closed = await recover();
        isRecovered = true;
        recovered.resolve();
        return closed;
      } catch (error) {
        recovered.reject(error);
        throw error;
      }
    },
    checkWrites: () => health.observe(() => records.checkWrites()),
    async close() {
      await Promise.allSettled(settling);
      cancelRetry?.();
      await spool?.close().catch((error: unknown) => {
        spooled.clear();
        notSpooled(error);
      });
      const safe = [...waiting.keys()].filter((requestId) => spooled.has(requestId)).length;
      return { spooled: safe, lost: waiting.size - safe };
    },
  };
}

function isPassing(error: unknown): boolean {
  return error instanceof StorageError && !error.isPermanent;
}

/** Rejects as the settlement does, and with `slow` when the database has not answered for so long that it may be stuck. */
async function inTime(made: Promise<void>, clock: Clock): Promise<void> {
  const answered = made.catch(() => {});
  if (!(await within(answered, stuckMs, clock)))
    throw new StorageError('the database takes too long to make a settlement', 'slow');
  await made;
}
