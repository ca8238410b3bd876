import type { LedgerRoot } from '../domain/statements/root.ts';
import { makeRoot } from '../operations/make-root.ts';
import type { RootTools } from '../operations/make-root.ts';
import { isOurs, repeatTask } from './repeat.ts';
import type { DutyOfOne, TaskPorts } from './repeat.ts';

/** How often it is seen whether a root is due, in milliseconds. */
const lookMs = 60_000;
const firstLookMs = 10_000;

/** A root is made in every hour, in milliseconds, counted from midnight in UTC. */
const rootMs = 3_600_000;

interface RootOptions extends TaskPorts, Pick<RootTools, 'chain' | 'roots' | 'audit'> {
  readonly duty: DutyOfOne;
  readonly onRoot: (root: LedgerRoot) => void;
}

/** The newest root, for metrics. */
export interface RootFigures {
  readonly number: number;
  readonly madeAtMs: number;
  readonly ageMs: number;
}

/** Makes a root over all ledgers and the audit every hour. */
export function keepRoots({ chain, roots, audit, duty, onRoot, ...ports }: RootOptions) {
  const { clock, onFault } = ports;
  let last: LedgerRoot | null = null;
  const notSealed = (fault: Error): void => onFault('a ledger could not be sealed', fault);
  const failure = 'no ledger root could be made: it is tried again in a minute';
  const { stop } = repeatTask(
    ports,
    { firstMs: firstLookMs, delayMs: lookMs, failure },
    async (_signal, pause) => {
      if (!(await isOurs(duty))) return void (last = null);
      last = await roots.lastRoot();
      if (last !== null && !isDue(last, clock.now())) return;
      const made = await makeRoot({ chain, roots, audit, clock, pause, onFault: notSealed });
      if (made === null) return;
      last = made;
      onRoot(made);
    },
  );
  return {
    /** `null` before the first root, and where another process makes them. */
    figures: (): RootFigures | null =>
      last === null
        ? null
        : {
            number: last.number,
            madeAtMs: last.madeAtMs,
            ageMs: Math.max(0, clock.now() - last.madeAtMs),
          },
    stop,
  };
}

/** Whether a new hour has begun since a root. One that is far ahead was made by a clock that was wrong: it stops no others. */
function isDue({ madeAtMs }: LedgerRoot, nowMs: number): boolean {
  return hourOf(madeAtMs) < hourOf(nowMs) || madeAtMs - nowMs > rootMs;
}

function hourOf(atMs: number): number {
  return Math.floor(atMs / rootMs);
}
