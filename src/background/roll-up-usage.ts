import { createPause } from '../domain/pause.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { SharedDuty } from '../domain/ports/shared-changes.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import type { UsageRollups } from '../domain/ports/usage.ts';
import { repeat } from './repeat.ts';

/** How long after the start, and how often, usage is rolled up, in milliseconds. */
const firstMs = 30_000;
const rollUpMs = 600_000;

/** The pause between two steps, in milliseconds: settlements are written meanwhile. */
const stepPauseMs = 20;

interface RollUpOptions {
  /** Resolves when the database can be used; rejects when it never can be. */
  readonly ready: Promise<void>;
  readonly clock: Clock;
  /** The rolling up, where processes share the database: one of them does it for all. */
  readonly duty: SharedDuty | null;
  readonly onFault: ReportFault;
}

/** The rolling up of usage. */
export interface UsageRoller {
  /** Resolves when nothing is rolled up any more. */
  stop(): Promise<void>;
}

/** Rolls up the days and months that are over, every ten minutes. Until then usage is read by its hours. */
export function keepRollingUp(
  rollups: UsageRollups,
  { ready, clock, duty, onFault }: RollUpOptions,
): UsageRoller {
  const stopping = new AbortController();
  const { signal } = stopping;
  const run = async (): Promise<void> => {
    try {
      if (duty !== null && !(await duty.isOurs())) return;
      await rollups.rollUp(clock.now(), createPause(clock, stepPauseMs, signal));
    } catch (error) {
      if (!signal.aborted) onFault('usage could not be rolled up: it is tried again in ten minutes', error);
    }
  };
  let running: (() => Promise<void>) | null = null;
  const start = (): void => {
    if (!signal.aborted) running = repeat(run, { firstMs, delayMs: rollUpMs }, clock, signal);
  };
  ready.then(start, () => {});
  return {
    async stop() {
      stopping.abort(new Error('the rolling up of usage is stopping'));
      await running?.();
    },
  };
}
