import { createPause } from '../domain/pause.ts';
import type { Pause } from '../domain/pause.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { SharedDuty } from '../domain/ports/shared-changes.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';

/** When work is done for the first time, and how long after each end again, in milliseconds. */
interface Times {
  readonly firstMs: number;
  readonly delayMs: number;
}

/** What a task works with. */
export interface TaskPorts {
  /** Resolves when the database can be used; rejects when it never can be, which is reported where it is opened. */
  readonly ready: Promise<void>;
  readonly clock: Clock;
  readonly onFault: ReportFault;
}

/** What one of the processes does that share a database; `null` where this one has it alone. */
export type DutyOfOne = SharedDuty | null;

/** The pause between two steps of work on the database, in milliseconds: settlements are written meanwhile. */
const stepPauseMs = 20;

/** Work that is repeated until it is stopped. */
export interface Task {
  /** Raised when it is stopped. */
  readonly signal: AbortSignal;
  /** Whether it has begun, as it does once the database can be used. */
  readonly hasBegun: boolean;
  /** Resolves when nothing of it runs any more. */
  readonly stop: () => Promise<void>;
}

/**
 * Repeats some work from when the database can be used, which gets a pause for between its steps that rejects when it is
 * stopped. What the work rejects with is reported as a `failure`, unless it was stopped meanwhile.
 */
export function repeatTask(
  { ready, clock, onFault }: TaskPorts,
  { failure, ...times }: Times & { readonly failure: string },
  work: (signal: AbortSignal, pause: Pause) => Promise<void>,
): Task {
  const stopping = new AbortController();
  const { signal } = stopping;
  const pause = createPause(clock, stepPauseMs, signal);
  let ended: (() => Promise<void>) | null = null;
  const attempt = async (): Promise<void> => {
    try {
      await work(signal, pause);
    } catch (error) {
      if (!signal.aborted) onFault(failure, error);
    }
  };
  const start = (): void => {
    if (!signal.aborted) ended = repeat(attempt, times, clock, signal);
  };
  ready.then(start, () => {});
  return {
    signal,
    get hasBegun() {
      return ended !== null;
    },
    async stop() {
      stopping.abort(new Error('the process is stopping'));
      await ended?.();
    },
  };
}

/** Whether this process does what one does for all. */
export async function isOurs(duty: DutyOfOne): Promise<boolean> {
  return duty === null || duty.isOurs();
}

/**
 * Does some work after `firstMs`, and again `delayMs` after each end of it, until the signal is raised. `work` must not
 * reject. Returns a function that resolves when the last work is done.
 */
export function repeat(
  work: () => Promise<void>,
  { firstMs, delayMs }: Times,
  clock: Clock,
  signal: AbortSignal,
): () => Promise<void> {
  let working = Promise.resolve();
  let cancel = clock.schedule(firstMs, again);
  signal.addEventListener('abort', () => cancel(), { once: true });
  function again(): void {
    working = work().then(() => {
      if (!signal.aborted) cancel = clock.schedule(delayMs, again);
    });
  }
  return () => working;
}
