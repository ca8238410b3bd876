import { keepLease } from '../../src/background/keep-lease.ts';
import type { LeaseKeeper } from '../../src/background/keep-lease.ts';
import { repeat } from '../../src/background/repeat.ts';
import { retrySettlements } from '../../src/background/retry-settlements.ts';
import type { KeptSettlements } from '../../src/background/retry-settlements.ts';
import { sweepOrphans } from '../../src/background/monitor-ledger.ts';
import { createSharedLimiter } from '../../src/coordination/shared-limiter.ts';
import type { SharedLimiter } from '../../src/coordination/shared-limiter.ts';
import type { SettledRecord } from '../../src/domain/money/consumption.ts';
import type { Clock } from '../../src/domain/ports/clock.ts';
import { createMemorySpool } from './memory-spool.ts';
import { simulateLeases, simulateRecords, simulateSlots } from './stores.ts';
import type { Actor } from './virtual-time.ts';
import { Wire } from './wire.ts';
import type { World } from './world.ts';

/** How often open records are swept, in milliseconds. */
const sweepMs = 15_000;

/** What a node keeps from one process to the next. */
export interface NodeDisk {
  readonly name: string;
  readonly spooled: SettledRecord[];
  /** By how much its wall clock differs from the virtual time, in milliseconds. */
  wallOffsetMs: number;
  processes: number;
}

/** One run of a gateway: the real limiter, lease, settlements and sweep, over the database of the simulation. */
export class GatewayProcess implements Actor {
  readonly name: string;
  readonly clock: Clock;
  readonly wire: Wire;
  readonly limiter: SharedLimiter;
  readonly records: KeptSettlements;
  readonly lease: LeaseKeeper;
  /** The requests that run here. */
  readonly inFlight = new Set<string>();
  /** The slots of each key that its requests have. */
  readonly running = new Map<string, number>();
  /** When it began. */
  readonly startedMs: number;
  readonly owner: () => string;
  pausedUntilMs = Number.NEGATIVE_INFINITY;
  isKilled = false;
  /** Whether it takes requests: once it is ready, and until it is to stop. */
  isServing = false;
  /** Whether it was told to stop. */
  isStopping = false;
  readonly #sweeping = new AbortController();

  constructor(disk: NodeDisk, world: World) {
    const { time, counts, note } = world;
    this.name = `${disk.name}.${++disk.processes}`;
    this.startedMs = time.nowMs;
    this.wire = new Wire(world, this);
    let ids = 0;
    const nextId = (): string => `${this.name}-${++ids}`;
    this.clock = {
      now: () => time.nowMs + disk.wallOffsetMs,
      monotonicMs: () => time.nowMs,
      schedule: (delayMs, callback) => time.after(delayMs, callback, this),
    };
    const { clock } = this;
    const onFault = (message: string): void => note(() => `  ${this.name} reports: ${message}`);
    const leases = simulateLeases(this.wire, world, nextId);
    this.owner = () => leases.owner();
    const store = simulateRecords(this.wire, world, this.owner);
    const slots = simulateSlots(this.wire, world, this.owner);
    this.limiter = createSharedLimiter(slots, {
      clock,
      ready: Promise.resolve(),
      onFault,
      // No key has them: each is stored with limits of its own.
      defaults: () => ({ concurrency: 1_000, requestsPerMinute: 1_000, queueWaitMs: 0 }),
      groupOf: () => null,
    });
    this.lease = keepLease(leases, {
      clock,
      ready: Promise.resolve(),
      onEnded: async () => {
        await store.closeLostRecords();
        await slots.freeLost();
      },
      onFault: (message) => {
        if (message === 'the lease of a process was over and is ended')
          counts['leases that were ended by others']++;
        onFault(message);
      },
    });
    this.records = retrySettlements(store, {
      clock,
      onFault,
      spool: createMemorySpool(disk.spooled, world, this),
      ready: this.lease.taken,
      isBroken: () => false,
      isLost: () => false,
    });
    const isPending = (requestId: string): boolean =>
      this.inFlight.has(requestId) || this.records.isWaiting(requestId);
    const sweep = async (): Promise<void> => {
      await sweepOrphans(store, isPending, clock.now()).catch(() => {});
    };
    const { signal } = this.#sweeping;
    void this.records.recover().then(() => {
      if (signal.aborted) return;
      this.isServing = true;
      repeat(sweep, { firstMs: 0, delayMs: sweepMs }, clock, signal);
    });
  }

  /** Ends in order, once no request runs here any more. */
  async stop(): Promise<void> {
    this.#sweeping.abort();
    await this.limiter.close();
    await this.records.flush();
    await this.lease.stop();
    await this.records.close();
  }
}
