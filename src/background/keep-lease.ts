import { leaseMs } from '../domain/ports/leases.ts';
import { inTime } from '../domain/time-limit.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { RecordLeases } from '../domain/ports/leases.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { sumFaults } from '../domain/fault-reports.ts';
import { repeat } from './repeat.ts';
import type { TaskPorts } from './repeat.ts';

/** How often the lease of this process is renewed, in milliseconds: two renewals may fail before it is over. */
const renewMs = 5_000;

/**
 * The pause between two looks at the leases, in milliseconds: what an ended process held is free within a second after its
 * lease was over. A renewal that failed is repeated as soon.
 */
const lookMs = 500;
const lookTimes = { firstMs: lookMs, delayMs: lookMs };

/**
 * How long this process ends no lease of another after a failure of the database, in milliseconds. The leases of others may
 * have run out while it was away, and they need as long to reach it again: their connections pause between two attempts.
 */
const graceMs = 5_000;

/** The longest pause in which an outage of the database is seen, in milliseconds: a process that stood still has seen none. */
const maxUnseenMs = 2 * lookMs;

/** How long before the end of the own lease it is said that others may end it, in milliseconds: they look as often. */
const warningMs = lookMs;

/** How long the end of the own lease is waited for when the process ends, in milliseconds: without one it runs out. */
const endMs = 2_000;

const lostMessage = 'the lease of this process had ended: its open records may have been closed as lost';

/** Is told what has become of the lease. */
type Follower = (state: 'ended' | 'may_end') => void;

/** The lease of this process. */
export interface LeaseKeeper {
  /** Resolves when the lease was taken, or could not be for now; rejects when the database can't be opened. */
  readonly taken: Promise<void>;
  /** Whether this process holds its lease, as far as it can know: its last renewal began less than 15 seconds ago. */
  readonly holds: boolean;
  /**
   * Calls back when it was found to have `ended`, before anything is begun under the next one; and when others `may_end` it soon,
   * because it could not be renewed.
   */
  follow(callback: Follower): void;
  /** Renews it now, as after an outage of the database; resolves when that is done, or has failed. */
  renew(): Promise<void>;
  /** Stops renewing it, and ends it if the database does so in time. Called after the last settlement. */
  stop(): Promise<void>;
}

/** What a lease is kept with. */
export interface LeaseOptions extends TaskPorts {
  /** Gives back what the owners without a lease held; called again soon if it fails. */
  readonly onEnded: () => Promise<void>;
}

/**
 * Takes a lease for this process once the database is open and renews it, so that no other process closes its open records,
 * and ends the leases of others that are over. The database judges all of them by its own clock. This process only counts
 * by a clock that never jumps, so neither a clock that is set nor one that is wrong matters.
 */
export function keepLease(
  leases: RecordLeases,
  { clock, ready, onEnded, onFault }: LeaseOptions,
): LeaseKeeper {
  const stopping = new AbortController();
  const { signal } = stopping;
  const faults = watchFaults(onFault, clock);
  let renewalBegunMs = Number.NEGATIVE_INFINITY;
  let hasLost = false;
  const followers = createFollowers(clock);
  const isYoungerThan = (ageMs: number): boolean => clock.monotonicMs() - renewalBegunMs < ageMs;

  let renewing: Promise<void> | null = null;
  // One at a time: of two that find the lease ended, each would take another one.
  const renew = (): Promise<void> => (renewing ??= renewOnce().finally(() => (renewing = null)));
  const renewOnce = async (): Promise<void> => {
    const begunMs = clock.monotonicMs();
    try {
      const hadEnded = await leases.renewLease();
      renewalBegunMs = begunMs;
      followers.renewed(begunMs, hadEnded);
      if (hadEnded) onFault(lostMessage, `it goes on as ${leases.owner()}`);
    } catch (error) {
      if (!signal.aborted) faults.note(error);
    }
  };
  const renewInTime = async (): Promise<void> => {
    if (!isYoungerThan(renewMs)) await renew();
  };
  const endOthers = async (): Promise<void> => {
    faults.noteLook();
    if (!isYoungerThan(leaseMs)) return;
    const hadLost = hasLost;
    // They may be ended although the answer is lost, and no process ends them a second time.
    hasLost ||= faults.areOver;
    try {
      const ended = faults.areOver ? await leases.endOverLeases() : [];
      for (const owner of ended) onFault('the lease of a process was over and is ended', owner);
      hasLost = hadLost || ended.length > 0;
      if (hasLost) await onEnded();
      hasLost = false;
    } catch (error) {
      if (!signal.aborted) faults.note(error);
    }
  };
  /** Each resolves when what it does is done. Renewals are apart from the rest, so that they wait for nothing else. */
  let tasks: readonly (() => Promise<void>)[] = [];
  const taken = ready.then(async () => {
    if (signal.aborted) return;
    const first = renew();
    tasks = [() => first];
    await first;
    if (signal.aborted) return;
    tasks = [renewInTime, endOthers].map((task) => repeat(task, lookTimes, clock, signal));
  });
  taken.catch(() => {});

  return {
    taken,
    get holds() {
      return isYoungerThan(leaseMs);
    },
    follow: (callback) => followers.add(callback),
    renew,
    async stop() {
      stopping.abort();
      followers.stop();
      const ended = Promise.all(tasks.map((task) => task())).then(() =>
        isYoungerThan(leaseMs) ? leases.endLease() : undefined,
      );
      await inTime(ended, endMs, clock);
      renewalBegunMs = Number.NEGATIVE_INFINITY;
    },
  };
}

/** Those who follow a lease. They are warned before others end it: what these may run then has to have stopped here. */
function createFollowers(clock: Clock) {
  const followers: Follower[] = [];
  let cancelWarning: (() => void) | null = null;
  let isStopped = false;
  const tell: Follower = (state) => {
    for (const follower of followers) follower(state);
  };
  return {
    add: (follower: Follower) => void followers.push(follower),
    /** It was renewed, by a call that began at a time on the monotonic clock, or taken anew, as others had ended it. */
    renewed(begunMs: number, hadEnded: boolean): void {
      if (hadEnded) tell('ended');
      cancelWarning?.();
      cancelWarning = null;
      if (isStopped || followers.length === 0) return;
      const leftMs = begunMs + leaseMs - warningMs - clock.monotonicMs();
      cancelWarning = clock.schedule(Math.max(0, leftMs), () => tell('may_end'));
    },
    stop(): void {
      isStopped = true;
      cancelWarning?.();
    },
  };
}

/** Reports the failures of the database, and says whether the last one is long enough ago. */
function watchFaults(onFault: ReportFault, clock: Clock) {
  const report = sumFaults('leases could not be renewed or ended', onFault, clock);
  let lastMs = Number.NEGATIVE_INFINITY;
  let lookedMs = clock.monotonicMs();
  return {
    /** Notes that it is looked now. After a pause the database may have been away until a moment ago. */
    noteLook(): void {
      const nowMs = clock.monotonicMs();
      if (nowMs - lookedMs > maxUnseenMs) lastMs = nowMs;
      lookedMs = nowMs;
    },
    note(error: unknown): void {
      lastMs = clock.monotonicMs();
      report(error);
    },
    get areOver(): boolean {
      return clock.monotonicMs() - lastMs >= graceMs;
    },
  };
}
