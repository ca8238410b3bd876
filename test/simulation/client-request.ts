import type { BudgetTerms, BudgetOwner } from '../../src/domain/budgets/budget.ts';
import type { RecordBeginning, Reservation, SettledRecord } from '../../src/domain/money/consumption.ts';
import type { LimitDecision } from '../../src/domain/limits/limits.ts';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import { openedRecord, settledRecord } from '../support/stored-rows.ts';
import type { GatewayProcess } from './gateway-process.ts';
import type { PlannedBudget, PlannedRequest } from './plan.ts';
import { Violation } from './violation.ts';
import type { World } from './world.ts';

/** What became of a request at its limits. */
type Admission = LimitDecision['verdict'] | 'storage';

/** One request, as the pipeline serves it: slot, record, answer, settlement, slot back. */
export class ClientRequest {
  readonly id: string;
  readonly #planned: PlannedRequest;
  readonly #process: GatewayProcess;
  readonly #world: World;

  constructor(id: string, planned: PlannedRequest, process: GatewayProcess, world: World) {
    this.id = id;
    this.#planned = planned;
    this.#process = process;
    this.#world = world;
  }

  /** Resolves with what became of it at its limits, once it is over. */
  async serve(): Promise<Admission> {
    const { counts, checks } = this.#world;
    const { inFlight } = this.#process;
    counts.requests++;
    inFlight.add(this.id);
    const end = checks.pending(this.#process, `request ${this.id}`);
    const admission = await this.#admit();
    if (admission === 'granted') await this.#runWithSlot();
    inFlight.delete(this.id);
    checks.leases.requestEnded(this.#process, this.id);
    end();
    return admission;
  }

  /** As `admit` does it: a request that may wait asks once without waiting. */
  async #admit(): Promise<Admission> {
    const { counts, time } = this.#world;
    const { key, mayWait, leavesMs } = this.#planned;
    const leaving = new AbortController();
    if (leavesMs !== null) time.after(leavesMs, () => leaving.abort(), this.#process);
    const first = await this.#acquire({ ...key.limits, queueWaitMs: 0 }, leaving.signal);
    if (first === 'granted') counts['slots granted at once']++;
    if (first !== 'concurrency' || !mayWait) return first;
    counts['requests that waited in the queue']++;
    const second = await this.#acquire(key.limits, leaving.signal);
    if (second === 'granted') counts['slots granted after a wait']++;
    if (second === 'concurrency' && leaving.signal.aborted) counts['clients that left the queue']++;
    return second;
  }

  async #acquire(limits: PlannedRequest['key']['limits'], signal: AbortSignal): Promise<Admission> {
    const { checks, counts, note } = this.#world;
    const { key } = this.#planned;
    const answered = checks.asked(this.#process, key, limits.queueWaitMs > 0);
    try {
      const { verdict } = await this.#process.limiter.acquire(key.id, this.id, limits, signal);
      note(() => `${this.#process.name} request ${this.id}: ${verdict}`);
      answered(verdict);
      return verdict;
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      note(() => `${this.#process.name} request ${this.id}: ${error.message}`);
      counts['refusals because the database was away']++;
      checks.failed(this.#process, error);
      return 'storage';
    }
  }

  async #runWithSlot(): Promise<void> {
    const { checks } = this.#world;
    const { key } = this.#planned;
    const released = checks.began(this.#process, key, this.id);
    const begun = await this.#begin();
    if (begun !== null) {
      const { time } = this.#world;
      await new Promise<void>((resolve) => time.after(this.#planned.runsMs, resolve, this.#process));
      await this.#settle(begun);
    }
    released();
    await this.#process.limiter.release(key.id, this.id);
  }

  /** Begins its record; `null` when it is refused. */
  async #begin(): Promise<RecordBeginning | null> {
    const { key, holdNanos, isStrict } = this.#planned;
    const { keyId: _keyId, requestId: _requestId, hold: _hold, budgets: _budgets, ...common } = openedRecord;
    const begun = { ...common, keyId: key.id };
    const hold = { nanos: holdNanos, leastNanos: isStrict ? holdNanos : 1 };
    const budgets = this.#wanted(this.#process.clock.now());
    let reservation: Reservation;
    try {
      const counting = budgets.length === 0 ? {} : { budgets };
      reservation = await this.#process.records.open({ ...begun, requestId: this.id, hold, ...counting });
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      this.#world.checks.failed(this.#process, error);
      return null;
    }
    if (!reservation.granted) return null;
    const { periods = [] } = reservation;
    const held = reservation.holdNanos ?? 0;
    const counted = budgets.map((terms, at) => {
      const { startMs, endMs } = periods[at] ?? terms;
      return Object.assign({}, terms, { startMs, endMs, holdNanos: held });
    });
    return {
      ...begun,
      holdNanos: held,
      ...(counted.length === 0 ? {} : { budgets: counted }),
    };
  }

  /** What it asks of the budgets of its key and its group: the clock of its process says in which period. */
  #wanted(atMs: number): readonly BudgetTerms[] {
    const { id, budget, group } = this.#planned.key;
    const terms = (owner: BudgetOwner, ownerId: string, of: PlannedBudget): BudgetTerms => {
      const startMs = Math.floor(atMs / of.periodMs) * of.periodMs;
      const period = { startMs, endMs: startMs + of.periodMs };
      return { id: `${ownerId} budget`, owner, ...period, limitNanos: of.amountNanos, levels: [] };
    };
    return [
      ...(budget === null ? [] : [terms('key', id, budget)]),
      ...(group === null ? [] : [terms('group', 'group:shared', group)]),
    ];
  }

  async #settle(begun: RecordBeginning): Promise<void> {
    const { checks, counts, note } = this.#world;
    const record: SettledRecord = {
      ...settledRecord,
      requestId: this.id,
      begun,
      chargeNanos: this.#planned.chargeNanos,
    };
    checks.money.settling(record);
    try {
      await this.#process.records.settle(record);
    } catch (error) {
      throw new Violation(`the settlement of ${this.id} was given up`, { cause: error });
    }
    if (this.#process.records.isWaiting(this.id)) counts['settlements that were kept and made later']++;
    note(() => `${this.#process.name} request ${this.id}: settled`);
    counts['requests that were settled']++;
    checks.money.answered(this.id);
  }
}
