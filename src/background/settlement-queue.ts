import type { SettledRecord } from '../domain/money/consumption.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { RecoverableRecords, SettlementSpool } from '../domain/ports/records.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { KeyLockedError, StorageError } from '../domain/storage-refusal.ts';
import { sumFaults } from '../domain/fault-reports.ts';
import { Roster } from '../shared/roster.ts';
import type { WriteHealth } from './write-health.ts';

/** The delay after which what the database did not take is offered to it again, in milliseconds. */
export const retryMs = 1_000;

/** How many are kept in memory; new requests are refused long before, since they can't be recorded. */
const maxWaiting = 100_000;

/** How many are offered at once: they share a commit. */
const offeredAtOnce = 500;

/** What a queue of settlements works with. */
interface QueueOptions {
  /** `isRepeated` says that it was tried before. */
  readonly settle: (record: SettledRecord, isRepeated: boolean) => Promise<number>;
  readonly isSettled: RecoverableRecords['isSettled'];
  readonly health: WriteHealth;
  readonly clock: Clock;
  readonly onFault: ReportFault;
  /** `null` for a database in memory, which nothing outlives. */
  readonly spool: SettlementSpool | null;
}

/** Settlements that the database did not take: in memory and in the spool, and offered to it again until it does. */
export class SettlementQueue {
  readonly #settle: QueueOptions['settle'];
  readonly #isSettled: RecoverableRecords['isSettled'];
  readonly #health: WriteHealth;
  readonly #clock: Clock;
  readonly #spool: SettlementSpool | null;
  readonly #onFault: ReportFault;
  readonly #notSpooled: (error: unknown) => void;
  /** By request. Each stays until it is made, so that the sweep does not take its record for an orphan. */
  readonly #waiting = new Map<string, SettledRecord>();
  /** Those of them that wait only because another session has locked their account. */
  readonly #ofLocked = new Set<string>();
  /** Those of them that are safe in the spool. */
  readonly #spooled = new Set<string>();
  /** Settlements that the database has and has not answered: they are not offered a second time. */
  readonly #underWay = new Roster<{ readonly requestId: string; readonly made: Promise<number> }>();
  /** What is told to those who wait for one of them. */
  readonly #awaited = new Map<string, PromiseWithResolvers<number>>();
  #isLeft = false;
  /** Whether anything was appended to the spool since it was emptied. */
  #spoolHolds = false;
  #waitingSinceMs = 0;
  #flushing: Promise<number> | null = null;
  #cancelRetry: (() => void) | null = null;

  constructor({ settle, isSettled, health, clock, onFault, spool }: QueueOptions) {
    this.#settle = settle;
    this.#isSettled = isSettled;
    this.#health = health;
    this.#clock = clock;
    this.#spool = spool;
    this.#onFault = onFault;
    this.#notSpooled = sumFaults('a settlement could not be written to the spool', onFault, clock);
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Whether any waits for the database to take writes, rather than for a lock on its account alone. */
  get waitsForDatabase(): boolean {
    return this.#waiting.size > this.#ofLocked.size;
  }

  /** False when memory for more is refused. */
  get hasRoom(): boolean {
    return this.#waiting.size < maxWaiting;
  }

  has(requestId: string): boolean {
    return this.#waiting.has(requestId);
  }

  /** How long the oldest has waited, in milliseconds; 0 when none waits. */
  lagMs(): number {
    return this.#waiting.size === 0 ? 0 : this.#clock.monotonicMs() - this.#waitingSinceMs;
  }

  /** Makes a settlement for the first time, and resolves as `Records.settle`; rejects when the database does not take it. */
  make(record: SettledRecord): Promise<number> {
    const { requestId, begun } = record;
    const made = this.#health.observe(this.#settle(record, this.#waiting.has(requestId)), begun.keyId);
    const place = this.#underWay.add({ requestId, made });
    made.then(
      () => this.#underWay.remove(place),
      (error: unknown) => {
        this.#underWay.remove(place);
        this.#noteFailure(requestId, error);
      },
    );
    return made;
  }

  /**
   * Keeps a settlement that could not be made for this error. Resolves once it is in the spool, or could not be written
   * there.
   */
  async keep(record: SettledRecord, error: unknown): Promise<void> {
    this.#add(record);
    this.#noteFailure(record.requestId, error);
    this.#retryLater();
    if (this.#spool === null) return;
    this.#spoolHolds = true;
    await this.#spool.append(record).then(() => this.#spooled.add(record.requestId), this.#notSpooled);
  }

  /**
   * Resolves as `Records.settle` when a settlement that is kept is made; rejects when it is given up, or is left to the next
   * process.
   */
  made(requestId: string): Promise<number> {
    if (this.#isLeft) return Promise.reject(closed());
    const awaited = this.#awaited.get(requestId) ?? Promise.withResolvers<number>();
    this.#awaited.set(requestId, awaited);
    return awaited.promise;
  }

  /** Ends all waits: what is kept is left to the next process. */
  leave(): void {
    this.#isLeft = true;
    for (const { reject } of this.#awaited.values()) reject(closed());
    this.#awaited.clear();
  }

  /** Takes over the settlements that an earlier process left in the spool; resolves with how many lines are damaged. */
  async readSpool(): Promise<number> {
    if (this.#spool === null) return 0;
    const { records, damaged } = await this.#spool.open();
    this.#spoolHolds = records.length + damaged > 0;
    for (const record of records) {
      this.#add(record);
      this.#spooled.add(record.requestId);
    }
    return damaged;
  }

  /** Offers all of them once more; resolves with how many still wait. */
  flush(): Promise<number> {
    return (this.#flushing ??= this.#offerAll().finally(() => (this.#flushing = null)));
  }

  /** Closes the spool; resolves with how many settlements are safe in it, and how many are lost. */
  async close(): Promise<{ readonly spooled: number; readonly lost: number }> {
    this.#cancelRetry?.();
    await this.#spool?.close().catch((error: unknown) => {
      this.#spooled.clear();
      this.#notSpooled(error);
    });
    const spooled = [...this.#waiting.keys()].filter((requestId) => this.#spooled.has(requestId)).length;
    return { spooled, lost: this.#waiting.size - spooled };
  }

  #add(record: SettledRecord): void {
    if (this.#waiting.size === 0) this.#waitingSinceMs = this.#clock.monotonicMs();
    this.#waiting.set(record.requestId, record);
  }

  #noteFailure(requestId: string, error: unknown): void {
    if (!(error instanceof KeyLockedError)) this.#ofLocked.delete(requestId);
    // One that may still be taken in time is not kept.
    else if (this.#waiting.has(requestId)) this.#ofLocked.add(requestId);
  }

  #retryLater(): void {
    this.#cancelRetry ??= this.#clock.schedule(retryMs, () => {
      this.#cancelRetry = null;
      void this.flush();
    });
  }

  /**
   * Stops at the first commit of which nothing is taken: the database would not take the others, either. Those of locked
   * accounts say nothing of the others.
   */
  async #offerAll(): Promise<number> {
    const offered = [...this.#waiting.values()];
    for (let at = 0; at < offered.length; at += offeredAtOnce) {
      const underWay = new Map(this.#underWay.all().map(({ requestId, made }) => [requestId, made]));
      const done = await Promise.all(
        offered
          .slice(at, at + offeredAtOnce)
          .map((record) => this.#offer(record, underWay.get(record.requestId) ?? null)),
      );
      if (!done.includes('done') && done.includes('refused')) break;
    }
    if (this.#waiting.size === 0 && this.#spoolHolds) await this.#emptySpool();
    if (this.#waiting.size > 0) this.#retryLater();
    return this.#waiting.size;
  }

  /** Resolves with what became of it; `underWay` is its settlement that the database has already. */
  async #offer(
    record: SettledRecord,
    underWay: Promise<number> | null,
  ): Promise<'done' | 'refused' | 'account locked'> {
    const { requestId } = record;
    try {
      const unbookedNanos = await (underWay ?? this.make(record));
      this.#awaited.get(requestId)?.resolve(unbookedNanos);
    } catch (error) {
      if (error instanceof KeyLockedError) return 'account locked';
      if (isPassing(error)) return 'refused';
      // A thread can die between its commit and its answer: the settlement is made then.
      // Each is a charge that is given up: one that is not named could not be told from one that was made.
      if (await this.#isSettled(record).catch(() => false)) {
        this.#awaited.get(requestId)?.resolve(0);
      } else {
        this.#awaited.get(requestId)?.reject(error);
        this.#onFault('a kept settlement could not be made', error);
      }
    }
    this.#awaited.delete(requestId);
    this.#waiting.delete(requestId);
    this.#ofLocked.delete(requestId);
    return 'done';
  }

  async #emptySpool(): Promise<void> {
    this.#spooled.clear();
    this.#spoolHolds = false;
    await this.#spool?.clear().catch(this.#notSpooled);
  }
}

function closed(): StorageError {
  return new StorageError('the database is closed', 'closed');
}

/** Whether the database may take the same unit later. */
export function isPassing(error: unknown): boolean {
  return error instanceof StorageError && !error.isPermanent;
}
