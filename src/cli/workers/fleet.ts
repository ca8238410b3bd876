import type { Clock } from '../../domain/ports/clock.ts';
import { within } from '../../domain/time-limit.ts';
import type { WorkerEnd, WorkerProcess } from './fork-worker.ts';
import type { SeatSettings } from './seat.ts';

/**
 * How many workers in a row may end before they take requests until the gateway gives up: during the start, and later if
 * none takes requests.
 */
const maxFailedStarts = 5;

/** How much longer than the drain time a worker may take to end, in milliseconds: more than its own deadline. */
const endGraceMs = 40_000;

/** What the fleet needs, and whom it tells what happens. */
interface FleetPorts {
  readonly clock: Clock;
  readonly fork: (settings: Omit<SeatSettings, 'peerToken'>) => WorkerProcess;
  /** How long running requests may take when a worker ends, in milliseconds. */
  readonly drainMs: () => number;
  /** A worker ended by itself, without being asked to; it is replaced after a delay in milliseconds. */
  readonly onLost: (worker: WorkerProcess, end: WorkerEnd, delayMs: number) => void;
  /** Any worker ended. */
  readonly onEnd: (worker: WorkerProcess) => void;
}

/** The place of one worker, which may be taken by several of them, one after the other. */
interface Place {
  worker: WorkerProcess | null;
  startedMs: number;
  cancelReplacement: () => void;
  readonly delay: RestartDelay;
}

/** The workers of a gateway: as many as were asked for, each of which is replaced when it ends by itself. */
export class Fleet {
  readonly #ports: FleetPorts;
  readonly #places: Place[] = [];
  readonly #alive = new Set<WorkerProcess>();
  readonly #failed = Promise.withResolvers<void>();
  readonly #up = Promise.withResolvers<boolean>();
  #count = 0;
  #failedStarts = 0;
  /** Whether the worker has started that makes the tables, the first key and the notices. */
  #hasBegun = false;
  /** Whether all workers have started, so that each that ends is replaced. */
  #isUp = false;
  #isLeaving = false;
  #isEnding = false;
  #isRestarting = false;
  #endedWell = true;

  constructor(ports: FleetPorts) {
    this.#ports = ports;
  }

  /** All worker processes, also those that are starting or ending; the longest running first. */
  get alive(): readonly WorkerProcess[] {
    return [...this.#alive];
  }

  /** The worker of each place, also one that is starting; those that end are left out. */
  get serving(): readonly WorkerProcess[] {
    return this.#places.flatMap(({ worker }) => worker ?? []);
  }

  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Resolves when no worker is left and none can be started. */
  get failed(): Promise<void> {
    return this.#failed.promise;
  }

  /**
   * Starts the workers: one, which makes the tables, the first key and the notices, and then the others. One that is
   * killed meanwhile is replaced; one that ends by itself is the end of the start, and has said why. Resolves with
   * whether all of them take requests.
   */
  start(count: number): Promise<boolean> {
    this.#count = count;
    this.#open();
    return this.#up.promise;
  }

  /**
   * Replaces all workers by new ones, as many as `count`, one after the other: an old one ends when its successor takes
   * requests. Stops at a new one that can't be started. Resolves with whether all are new.
   */
  async restart(count: number): Promise<boolean> {
    if (!this.#isUp || this.#isRestarting || this.#isEnding) return false;
    this.#isRestarting = true;
    try {
      this.#count = count;
      while (this.#places.length > count) await this.#retire(this.#places.pop());
      for (const place of this.#places) if (!(await this.#renew(place))) return false;
      while (this.#places.length < count) {
        const place = this.#addPlace();
        if (await this.#renew(place)) continue;
        this.#places.splice(this.#places.indexOf(place), 1);
        return false;
      }
      return true;
    } finally {
      this.#isRestarting = false;
    }
  }

  /** Has all workers answer that they are not ready, also those that start from now on. */
  leave(): void {
    this.#isLeaving = true;
    for (const worker of this.#alive) worker.leave();
  }

  /** Ends all workers, and resolves with whether each ended well. One that hangs is killed. */
  async end(): Promise<boolean> {
    this.#isEnding = true;
    this.#up.resolve(false);
    for (const { cancelReplacement } of this.#places) cancelReplacement();
    const ending = this.alive;
    for (const worker of ending) worker.end();
    await Promise.all(ending.map((worker) => this.#awaitEnd(worker)));
    return this.#endedWell;
  }

  /** Kills all workers at once. */
  kill(): void {
    for (const worker of this.#alive) worker.kill();
  }

  #addPlace(): Place {
    const place: Place = {
      worker: null,
      startedMs: 0,
      cancelReplacement: () => {},
      delay: new RestartDelay(),
    };
    this.#places.push(place);
    return place;
  }

  /** Starts a worker in a new place. */
  #open(): void {
    const place = this.#addPlace();
    place.worker = this.#fork(place);
  }

  #fork(place: Place): WorkerProcess {
    const worker = this.#ports.fork({ isFirst: !this.#hasBegun, count: this.#count });
    this.#alive.add(worker);
    void worker.started.then((hasStarted) => {
      this.#failedStarts = hasStarted ? 0 : this.#failedStarts + 1;
      if (hasStarted) place.startedMs = this.#ports.clock.monotonicMs();
      if (hasStarted && this.#isLeaving) worker.leave();
      if (hasStarted && !this.#isUp && !this.#isEnding) this.#startOthers();
    });
    void worker.ended.then((end) => this.#onEnd(place, worker, end));
    return worker;
  }

  /** Goes on with the start when one of its workers takes requests: with all others, or as soon as all do. */
  #startOthers(): void {
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      while (this.#places.length < this.#count) this.#open();
    }
    this.#isUp = this.#places.every(({ worker }) => worker?.hasStarted === true && this.#alive.has(worker));
    if (this.#isUp) this.#up.resolve(true);
  }

  #onEnd(place: Place, worker: WorkerProcess, end: WorkerEnd): void {
    this.#alive.delete(worker);
    this.#ports.onEnd(worker);
    if (this.#isEnding) {
      if (end.code !== 0) this.#endedWell = false;
      return;
    }
    if (place.worker !== worker) return;
    place.worker = null;
    // Its successor would end for the same reason, which it has said: a config or a database that can't be used.
    if (!this.#isUp && (end.signal === null || end.isOverdue)) return this.#up.resolve(false);
    const isAnyLeft = this.#isUp && this.alive.some(({ hasStarted }) => hasStarted);
    if (!isAnyLeft && this.#failedStarts >= maxFailedStarts) return this.#failed.resolve();
    const servedMs = worker.hasStarted ? this.#ports.clock.monotonicMs() - place.startedMs : null;
    const delayMs = place.delay.next(servedMs);
    this.#ports.onLost(worker, end, delayMs);
    place.cancelReplacement = this.#ports.clock.schedule(delayMs, () => {
      place.worker = this.#fork(place);
    });
  }

  /** Starts another worker for a place; when it takes requests, the one that has it then retires. */
  async #renew(place: Place): Promise<boolean> {
    const next = this.#fork(place);
    if (!(await next.started) || this.#isEnding) return false;
    // It may have ended, or have been replaced, meanwhile.
    place.cancelReplacement();
    const previous = place.worker;
    place.worker = next;
    if (previous === null) return true;
    previous.retire();
    await this.#awaitEnd(previous);
    return true;
  }

  async #retire(place: Place | undefined): Promise<void> {
    place?.cancelReplacement();
    const worker = place?.worker;
    if (place === undefined || worker === null || worker === undefined) return;
    place.worker = null;
    worker.retire();
    await this.#awaitEnd(worker);
  }

  async #awaitEnd(worker: WorkerProcess): Promise<void> {
    const ended = worker.ended.then(() => {});
    if (await within(ended, this.#ports.drainMs() + endGraceMs, this.#ports.clock)) return;
    worker.kill();
    await ended;
  }
}

/** How long a worker must have taken requests for its end to count as the first one, in milliseconds. */
const stableMs = 60_000;

/** The delays before a worker is replaced, in milliseconds: the first one, the second, and the most. */
const firstDelayMs = 0;
const secondDelayMs = 500;
const longestDelayMs = 30_000;

/** How long to wait before a worker that ended by itself is replaced: at first not at all, then ever longer. */
class RestartDelay {
  #ends = 0;

  /** The delay after the end of a worker that took requests for `servedMs`, or not at all (`null`). */
  next(servedMs: number | null): number {
    if (servedMs !== null && servedMs >= stableMs) this.#ends = 0;
    this.#ends++;
    if (this.#ends === 1) return firstDelayMs;
    return Math.min(longestDelayMs, secondDelayMs * 2 ** (this.#ends - 2));
  }
}
