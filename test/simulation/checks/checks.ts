import type { LimitDecision } from '../../../src/domain/limits/limits.ts';
import type { Counts } from '../counts.ts';
import type { OpenRequest } from '../database/memory-books.ts';
import type { MemoryDatabase } from '../database/memory-database.ts';
import type { GatewayProcess } from '../gateway-process.ts';
import type { Plan, PlannedKey } from '../plan.ts';
import type { VirtualTime } from '../virtual-time.ts';
import { Violation } from '../violation.ts';
import { LeaseChecks } from './lease-checks.ts';
import { MoneyChecks } from './money-checks.ts';
import { SlotChecks } from './slot-checks.ts';

/** What a history is checked with: each check throws where its rule is broken. */
export class Checks {
  readonly money: MoneyChecks;
  /** A rule that a step of the database has broken. */
  violation: Violation | null = null;
  readonly leases: LeaseChecks;
  readonly #slots: SlotChecks;
  readonly #database: MemoryDatabase;
  readonly #plan: Plan;
  readonly #pending = new Map<object, { readonly process: GatewayProcess; readonly what: string }>();
  /** The calls that may still take effect. */
  #onTheWay = 0;

  constructor(
    plan: Plan,
    database: MemoryDatabase,
    time: VirtualTime,
    counts: Counts,
    processes: () => readonly GatewayProcess[],
  ) {
    this.#plan = plan;
    this.#database = database;
    this.money = new MoneyChecks(database.books, counts);
    this.leases = new LeaseChecks(database, time, counts, processes);
    this.#slots = new SlotChecks(database, time, counts, plan.keys);
  }

  /** Keeps the first violation that was thrown in a step of the database. */
  noteViolation(error: unknown): void {
    if (error instanceof Violation) this.violation ??= error;
  }

  /** A call is on its way to the database. */
  sent(): void {
    this.#onTheWay++;
  }

  /** A call has arrived there, or can't any more. */
  arrived(): void {
    this.#onTheWay--;
  }

  /** The database has made a step. */
  stepped(): void {
    this.#slots.stepped();
  }

  /** Open requests were closed as lost; returns how many. */
  closed(requests: readonly OpenRequest[]): number {
    this.money.closed(requests);
    this.leases.closed(requests);
    return requests.length;
  }

  asked(
    process: GatewayProcess,
    key: PlannedKey,
    mayWait: boolean,
  ): (verdict: LimitDecision['verdict']) => void {
    return this.#slots.asked(process, key, mayWait);
  }

  began(process: GatewayProcess, key: PlannedKey, requestId: string): () => void {
    return this.#slots.began(process, key.id, requestId);
  }

  /** A request was refused because the database was away: in a history without faults it never is. */
  failed(process: GatewayProcess, error: unknown): void {
    const { faults, weather } = this.#plan;
    const isFaulty = faults.length > 0 || Object.values(weather).some((likely: number) => likely > 0);
    if (!isFaulty && process.lease.holds)
      throw new Violation('a request failed although nothing went wrong', { cause: error });
  }

  /** Something is to end, unless its process is killed. Returns what is to be called at its end. */
  pending(process: GatewayProcess, what: string): () => void {
    const entry = { process, what };
    this.#pending.set(entry, entry);
    return () => void this.#pending.delete(entry);
  }

  /** What is left to do: nothing, when a history may end. */
  left(processes: readonly GatewayProcess[]): readonly string[] {
    const { slots, books } = this.#database;
    for (const [entry, { process }] of this.#pending) if (process.isKilled) this.#pending.delete(entry);
    const some = (count: number, what: string): readonly string[] =>
      count === 0 ? [] : [`${count} ${what}`];
    return [
      ...some(this.#onTheWay, 'calls on their way'),
      ...[...this.#pending.values()].map(({ what }) => what),
      ...slots.slots.map(({ requestId }) => `the slot of ${requestId}`),
      ...slots.waiting.map(({ requestId }) => `the place of ${requestId}`),
      ...[...books.open.keys()].map((requestId) => `the open record of ${requestId}`),
      ...processes.flatMap(({ name, records }) => some(records.waiting, `settlements that wait in ${name}`)),
    ];
  }
}
