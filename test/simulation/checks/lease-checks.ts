import type { Counts } from '../counts.ts';
import type { OpenRequest } from '../database/memory-books.ts';
import type { MemoryDatabase } from '../database/memory-database.ts';
import { leaseMs } from '../database/memory-leases.ts';
import type { GatewayProcess } from '../gateway-process.ts';
import type { VirtualTime } from '../virtual-time.ts';
import { Violation } from '../violation.ts';

/** How long after the end of a lease all of its slots, places and open records must be free, in milliseconds. */
const freedMs = 1_000;

/** The same where the process that ended the lease was disturbed or killed before it had freed them: others search for them. */
const searchedMs = 16_000;

/** How long after its end a request may have a slot or a place, in milliseconds. */
const releasedMs = 3_000;

/** How long a process must have been undisturbed for a promise to hold that depends on it, in milliseconds. */
const undisturbedMs = 20_000;

/** Checks which leases are ended, and that what an ended process had is free in time. */
export class LeaseChecks {
  readonly #database: MemoryDatabase;
  readonly #time: VirtualTime;
  readonly #counts: Counts;
  readonly #processes: () => readonly GatewayProcess[];
  /** The owners whose leases were ended, with the owners that ended them. */
  readonly #endedBy = new Map<string, string>();
  /** When the database was away last, in virtual time. */
  awayMs = Number.NEGATIVE_INFINITY;

  constructor(
    database: MemoryDatabase,
    time: VirtualTime,
    counts: Counts,
    processes: () => readonly GatewayProcess[],
  ) {
    this.#database = database;
    this.#time = time;
    this.#counts = counts;
    this.#processes = processes;
  }

  /** A lease was ended by another process than its own. */
  ended(owner: string, judge: string): void {
    this.#endedBy.set(owner, judge);
    const process = this.#processes().find((one) => !one.isKilled && one.owner() === owner);
    if (process !== undefined && this.#isUndisturbed(process, undisturbedMs))
      throw new Violation(`${judge} ended the lease of ${owner}, which was never cut off alone`);
  }

  /** A process was killed or paused: what it has must be free soon after its lease is over. */
  lost(process: GatewayProcess): void {
    const owner = process.owner();
    const lease = this.#database.leases.get(owner);
    if (lease === undefined) return;
    const overMs = lease.renewedMs + leaseMs - this.#database.nowMs();
    this.#time.after(Math.max(0, overMs) + freedMs, () => {
      const now = this.#database.leases.get(owner);
      if (now !== undefined && now.renewedMs !== lease.renewedMs) {
        if (process.isKilled || process.pausedUntilMs > this.#time.nowMs) this.lost(process);
        return;
      }
      this.#checkFreed(owner, process);
    });
  }

  /** Open requests were closed as lost: they must not run on a process that has its lease. */
  closed(requests: readonly OpenRequest[]): void {
    for (const { requestId, owner } of requests) {
      if (!this.#database.leases.has(owner)) continue;
      const process = this.#processes().find(({ inFlight }) => inFlight.has(requestId));
      if (process !== undefined)
        throw new Violation(`${requestId} was closed as lost, and runs on ${process.name}`);
    }
  }

  /** A request is over: what it had must be free soon, unless something is wrong with its process or the database. */
  requestEnded(process: GatewayProcess, requestId: string): void {
    this.#time.after(releasedMs, () => {
      const { slots, waiting } = this.#database.slots;
      if (![...slots, ...waiting].some((place) => place.requestId === requestId)) return;
      const isAway = this.awayMs > this.#time.nowMs - undisturbedMs;
      if (!isAway && !process.isStopping && this.#isUndisturbed(process, undisturbedMs))
        throw new Violation(`${requestId} is over for ${releasedMs} ms, and has a slot or a place`);
    });
  }

  #checkFreed(owner: string, process: GatewayProcess, wasSearched = false): void {
    // One that stops in order ends its lease itself.
    if (process.isStopping) return;
    if (
      this.awayMs > this.#time.nowMs - undisturbedMs ||
      !this.#processes().some((one) => this.#couldJudge(one))
    )
      return;
    const { slots, books, leases } = this.#database;
    const what = `of ${process.name} ${wasSearched ? searchedMs : freedMs} ms after its lease was over`;
    if (leases.has(owner)) throw new Violation(`the lease ${what} is not ended`);
    const judge = this.#processes().find((one) => one.owner() === this.#endedBy.get(owner));
    if (!wasSearched && (judge === undefined || !this.#isUndisturbed(judge, freedMs))) {
      this.#time.after(searchedMs - freedMs, () => this.#checkFreed(owner, process, true));
      return;
    }
    this.#counts['checks that all of an ended process was free in time']++;
    if ([...slots.slots, ...slots.waiting].some((place) => place.owner === owner))
      throw new Violation(`a slot or a place ${what} is not free`);
    if ([...books.open.values()].some((open) => open.owner === owner && !this.#isLate(open.requestId)))
      throw new Violation(`an open record ${what} is not closed`);
  }

  /** The records that were begun after the lease of their owner was ended: the next sweep closes them. */
  readonly late = new Set<string>();

  #isLate(requestId: string): boolean {
    return this.late.has(requestId);
  }

  /** Whether a process could have ended leases for some seconds. */
  #couldJudge(judge: GatewayProcess): boolean {
    const lease = this.#database.leases.get(judge.owner());
    return (
      lease !== undefined &&
      this.#isUndisturbed(judge, undisturbedMs) &&
      lease.sinceMs <= this.#database.nowMs() - leaseMs - 2 * freedMs
    );
  }

  /** Whether nothing but an outage of the database kept a process from it for a while. */
  #isUndisturbed(process: GatewayProcess, forMs: number): boolean {
    const beforeMs = this.#time.nowMs - forMs;
    const { isKilled, startedMs, pausedUntilMs, wire } = process;
    return (
      !isKilled &&
      startedMs < beforeMs &&
      pausedUntilMs < beforeMs &&
      wire.cut === null &&
      wire.disturbedUntilMs < beforeMs
    );
  }
}
