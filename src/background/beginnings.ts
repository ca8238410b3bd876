import { sumFaults } from '../domain/fault-reports.ts';
import type { OpenedRecord, Reservation, SettledRecord } from '../domain/money/consumption.ts';
import { within } from '../domain/time-limit.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { OrderedRecords } from '../domain/ports/records.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { isPassing, retryMs } from './settlement-queue.ts';
import type { WriteHealth } from './write-health.ts';

/** How long a beginning waits for others that are written with it, in milliseconds. A request that is over by then needs none. */
const togetherMs = 50;

/** How long a read waits for beginnings that it would not see, in milliseconds: a disk that is stuck must not hold it up. */
const maxReadDelayMs = 200;

/** How many balances are remembered; beyond that all are forgotten, and the database is asked for them again. */
const maxBalances = 10_000;

/** A record that was begun in memory. */
interface Beginning {
  readonly record: OpenedRecord;
  /** What the database will set aside for it; `null` for a key without a balance. */
  readonly holdNanos: number | null;
  isWritten: boolean;
}

/** A beginning that is asked of the database, whose answer says what the balance of its key is. */
interface Asking {
  readonly answered: Promise<unknown>;
  /** What the settlements that were handed in behind it add to that balance. */
  addedNanos: number;
}

/** What beginnings in memory need. */
interface BeginningsOptions {
  readonly records: OrderedRecords;
  readonly health: WriteHealth;
  readonly clock: Clock;
  readonly onFault: ReportFault;
}

/**
 * Begins records in memory, where this process alone writes the database: with the balance that a key will have there once
 * all that was handed in is done, a hold is judged without asking. The beginnings of requests that still run are written
 * together a little later, and the settlement of a request that is over by then writes all of it. After a crash in between
 * nothing is known of the request, and its key was not charged.
 *
 * The database decides as it would have at once, since units are done in the order in which they are handed in: beginnings
 * first, whenever another unit might read or change a balance. Then all balances are forgotten. A settlement that charges no
 * more than its hold is no such unit: behind it the balance has whatever it had before. A hold of which a balance in memory
 * has only a part, which a settlement in between would change, a key with a budget, and a record of a new kind are for the
 * database alone.
 */
export class Beginnings {
  readonly #records: OrderedRecords;
  readonly #health: WriteHealth;
  readonly #clock: Clock;
  readonly #notWritten: (error: unknown) => void;
  readonly #onFault: ReportFault;
  /** What each key has free, in nano-USD. */
  readonly #free = new Map<string, { nanos: number | null }>();
  readonly #asking = new Map<string, Asking>();
  /** By request. A map lives for one interval: see `Roster`. */
  #waiting = new Map<string, Beginning>();
  /** Those that were handed in and are not answered. */
  readonly #handedIn = new Set<Map<string, Beginning>>();
  #written = Promise.resolve();
  /** The requests for which the database has set aside something else. */
  readonly #different = new Set<string>();
  #timer: { readonly dueMs: number; readonly cancel: () => void } | null = null;
  #isClosed = false;

  constructor({ records, health, clock, onFault }: BeginningsOptions) {
    this.#records = records;
    this.#health = health;
    this.#clock = clock;
    this.#onFault = onFault;
    this.#notWritten = sumFaults(
      'the database does not take beginnings of records: they are kept and offered again',
      onFault,
      clock,
    );
  }

  /** Begins a record in memory; `null` where only the database can. */
  begin(record: OpenedRecord): Reservation | null {
    const { keyId, budgets, hold } = record;
    const balance = this.#free.get(keyId);
    if (balance === undefined || budgets !== undefined || !this.#records.isKnownKind(record)) return null;
    const { nanos } = balance;
    if (nanos !== null && nanos < hold.nanos && hold.nanos !== 0) return null;
    const holdNanos = nanos === null ? null : hold.nanos;
    this.#keep({ record, holdNanos, isWritten: false });
    if (nanos === null || holdNanos === null) return { granted: true, holdNanos: null, balanceNanos: null };
    balance.nanos = nanos - holdNanos;
    return { granted: true, holdNanos, balanceNanos: balance.nanos };
  }

  /** Begins a record in the database, or in memory once the database has answered for another request of its key. */
  async open(record: OpenedRecord): Promise<Reservation> {
    const { keyId, budgets } = record;
    const earlier = budgets === undefined ? this.#asking.get(keyId) : undefined;
    if (earlier !== undefined) {
      await earlier.answered;
      const begun = this.begin(record);
      if (begun !== null) return begun;
    }
    const answered = Promise.withResolvers<void>();
    const asking = { answered: answered.promise, addedNanos: 0 };
    try {
      const reservation = await this.#records.open(record, () => {
        this.#handIn();
        // What the database answers to another one that asks is no longer so behind this one.
        const isAsking = budgets === undefined && !this.#asking.has(keyId);
        this.forgetKey(keyId);
        if (isAsking) this.#asking.set(keyId, asking);
      });
      if (reservation.granted && this.#asking.get(keyId) === asking) {
        const { balanceNanos } = reservation;
        if (this.#free.size >= maxBalances) this.#free.clear();
        this.#free.set(keyId, { nanos: balanceNanos === null ? null : balanceNanos + asking.addedNanos });
      }
      return reservation;
    } finally {
      if (this.#asking.get(keyId) === asking) this.#asking.delete(keyId);
      answered.resolve();
    }
  }

  /** Settles a record, whose beginning need not have been written. `isRepeated` says that it was tried before. */
  async settle(record: SettledRecord, isRepeated: boolean): Promise<number> {
    const { requestId, begun } = record;
    let taken: Beginning | undefined;
    try {
      return await this.#records.settle(record, () => {
        if (isRepeated || this.#takesMore(record)) this.#handIn();
        const isUnwritten = this.#waiting.has(requestId);
        taken = this.#take(requestId);
        const isDifferent = this.#different.delete(requestId);
        // An earlier try may have been made, and was added then.
        if (isRepeated || isDifferent) this.forgetKey(begun.keyId);
        else this.#add(begun, record.chargeNanos);
        return isUnwritten;
      });
    } catch (error) {
      // Its hold is to be in force when the database is back.
      if (taken?.isWritten === false && isPassing(error)) this.#keep(taken);
      this.#forget();
      throw error;
    }
  }

  /** Whether a settlement was made. Then its beginning, which may have been written again, is ended. */
  async isSettled(record: SettledRecord): Promise<boolean> {
    const isSettled = await this.#records.isSettled(record);
    // If that fails, the sweep does it.
    if (isSettled) await this.#records.closeAsLost([record.requestId]).catch(() => {});
    return isSettled;
  }

  /** Hands in what is in memory, before a unit that may change any balance. */
  beforeUnit(): void {
    this.#handIn();
    this.#forget();
  }

  /** Resolves when no beginning that was made before is in memory alone, unless the database does not take it in time. */
  async written(): Promise<void> {
    this.#handIn();
    if (this.#handedIn.size > 0) await within(this.#written, maxReadDelayMs, this.#clock);
  }

  /** Ends what would be tried again. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  /** Has the database asked for the balance of a key again. */
  forgetKey(keyId: string): void {
    this.#free.delete(keyId);
    this.#asking.delete(keyId);
  }

  #forget(): void {
    this.#free.clear();
    this.#asking.clear();
  }

  /** Whether a settlement takes more off a balance than its request holds: one that is begun later may find less then. */
  #takesMore({ begun: { keyId, holdNanos }, chargeNanos }: SettledRecord): boolean {
    return chargeNanos > holdNanos && this.#free.get(keyId)?.nanos !== null;
  }

  /** Adds what a settlement gives back and takes off what it charges. */
  #add({ keyId, holdNanos, budgets }: SettledRecord['begun'], chargeNanos: number): void {
    // A period that is over, or one of a budget that is gone, may have held something else.
    if (budgets !== undefined) return this.forgetKey(keyId);
    const balance = this.#free.get(keyId);
    if (balance !== undefined && balance.nanos !== null) balance.nanos += holdNanos - chargeNanos;
    const asking = this.#asking.get(keyId);
    if (asking !== undefined) asking.addedNanos += holdNanos - chargeNanos;
  }

  #keep(beginning: Beginning): void {
    this.#waiting.set(beginning.record.requestId, beginning);
    this.#handInLater(togetherMs);
  }

  /** Takes a beginning out of memory that is not known to be written. One that is under way is not offered again. */
  #take(requestId: string): Beginning | undefined {
    for (const unwritten of [this.#waiting, ...this.#handedIn]) {
      const found = unwritten.get(requestId);
      if (unwritten.delete(requestId)) return found;
    }
  }

  #handInLater(delayMs: number): void {
    const dueMs = this.#clock.monotonicMs() + delayMs;
    if (this.#isClosed || (this.#timer !== null && this.#timer.dueMs <= dueMs)) return;
    this.#timer?.cancel();
    const cancel = this.#clock.schedule(delayMs, () => {
      this.#timer = null;
      this.#handIn();
    });
    this.#timer = { dueMs, cancel };
  }

  #handIn(): void {
    const waiting = this.#waiting;
    if (waiting.size === 0) return;
    this.#waiting = new Map();
    this.#handedIn.add(waiting);
    const writes = Array.from(waiting.values(), (beginning) => this.#write(beginning, waiting));
    this.#written = Promise.all([this.#written, ...writes]).then(() => void this.#handedIn.delete(waiting));
  }

  /** Writes a beginning; never rejects. */
  async #write(beginning: Beginning, handedIn: Map<string, Beginning>): Promise<void> {
    const { record, holdNanos } = beginning;
    try {
      const written = await this.#health.observe(this.#records.open(record), record.keyId);
      beginning.isWritten = true;
      if (written.granted && written.holdNanos === holdNanos) return;
      this.forgetKey(record.keyId);
      if (handedIn.has(record.requestId)) this.#different.add(record.requestId);
      this.#onFault('a hold in memory is not the one in the database', record.requestId);
    } catch (error) {
      this.#forget();
      // Its settlement says how it was begun.
      if (!isPassing(error)) return this.#onFault('the beginning of a record can not be written', error);
      this.#notWritten(error);
      if (!handedIn.has(record.requestId)) return;
      this.#waiting.set(record.requestId, beginning);
      this.#handInLater(retryMs);
    }
  }
}
