import { createPause } from '../domain/pause.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { SharedDuty } from '../domain/ports/shared-changes.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import type { LedgerRoot } from '../domain/statements/root.ts';
import { makeRoot } from '../operations/make-root.ts';
import type { RootTools } from '../operations/make-root.ts';
import { repeat } from './repeat.ts';

/** How often it is seen whether a root is due, in milliseconds. */
const lookMs = 60_000;
const firstLookMs = 10_000;

/** A root is made in every hour, in milliseconds, counted from midnight in UTC. */
const rootMs = 3_600_000;

/** The pause between two steps, in milliseconds: settlements are written meanwhile. */
const stepPauseMs = 20;

interface RootOptions extends Pick<RootTools, 'chain' | 'roots'> {
  /** Resolves when the database can be used; rejects when it never can be. */
  readonly ready: Promise<void>;
  readonly clock: Clock;
  /** The making of roots, where processes share the database: one of them makes them for all. */
  readonly duty: SharedDuty | null;
  readonly onRoot: (root: LedgerRoot) => void;
  readonly onFault: ReportFault;
}

/** The newest root, for metrics. */
export interface RootFigures {
  readonly number: number;
  readonly madeAtMs: number;
  readonly ageMs: number;
}

/** The making of roots. */
export interface RootKeeper {
  /** `null` before the first root, and where another process makes them. */
  figures(): RootFigures | null;
  /** Resolves when nothing is sealed any more. */
  stop(): Promise<void>;
}

/** Makes a root over all ledgers every hour. */
export function keepRoots({ chain, roots, ready, clock, duty, onRoot, onFault }: RootOptions): RootKeeper {
  const stopping = new AbortController();
  const { signal } = stopping;
  let last: LedgerRoot | null = null;

  const make = async (): Promise<void> => {
    try {
      if (duty !== null && !(await duty.isOurs())) {
        last = null;
        return;
      }
      last = await roots.lastRoot();
      if (last !== null && !isDue(last, clock.now())) return;
      const pause = createPause(clock, stepPauseMs, signal);
      const report = (fault: Error): void => onFault('a ledger could not be sealed', fault);
      const made = await makeRoot({ chain, roots, clock, pause, onFault: report });
      if (made === null) return;
      last = made;
      onRoot(made);
    } catch (error) {
      if (!signal.aborted) onFault('no ledger root could be made: it is tried again in a minute', error);
    }
  };
  let making: (() => Promise<void>) | null = null;
  const start = (): void => {
    if (!signal.aborted) making = repeat(make, { firstMs: firstLookMs, delayMs: lookMs }, clock, signal);
  };
  ready.then(start, () => {});
  return {
    figures: () =>
      last === null
        ? null
        : {
            number: last.number,
            madeAtMs: last.madeAtMs,
            ageMs: Math.max(0, clock.now() - last.madeAtMs),
          },
    async stop() {
      stopping.abort(new Error('the making of ledger roots is stopping'));
      await making?.();
    },
  };
}

/** Whether a new hour has begun since a root. One that is far ahead was made by a clock that was wrong: it stops no others. */
function isDue({ madeAtMs }: LedgerRoot, nowMs: number): boolean {
  return hourOf(madeAtMs) < hourOf(nowMs) || madeAtMs - nowMs > rootMs;
}

function hourOf(atMs: number): number {
  return Math.floor(atMs / rootMs);
}
