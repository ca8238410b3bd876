import { sumFaults } from '../../domain/fault-reports.ts';
import { writePart } from '../../domain/history/part-text.ts';
import type { HistoryPart } from '../../domain/history/interval.ts';
import type { HistoryStore, StoredPart } from '../../domain/ports/history.ts';
import { repeatTask } from '../repeat.ts';
import type { TaskPorts } from '../repeat.ts';
import { IntervalCounter } from './count-intervals.ts';
import type { IntervalPorts } from './count-intervals.ts';

/** How often it is seen whether an interval is over, in milliseconds. */
const lookMs = 1_000;

/** How many intervals wait for a database that is away at most: those of ten minutes, of which the oldest is left out then. */
const maxWaiting = 70;

/** The history of this process. */
export type KeptHistory = ReturnType<typeof keepHistory>;

/**
 * Keeps the history of this process: each interval is stored when it is over. A process that is killed loses the open one, of
 * 10 s. What the database does not take is offered again.
 */
export function keepHistory(store: Pick<HistoryStore, 'write'>, ports: TaskPorts & IntervalPorts) {
  const { clock, onFault } = ports;
  const failure = 'history could not be written';
  const report = sumFaults(failure, onFault, clock);
  const waiting = new Map<string, readonly StoredPart[]>();
  const counter = new IntervalCounter(ports, (parts) => {
    const [{ process, lengthMs, atMs } = { process: '', lengthMs: 0, atMs: 0 }] = parts;
    waiting.set(`${process} ${lengthMs} ${atMs}`, parts.map(toStored));
    const [oldest = ''] = waiting.keys();
    if (waiting.size > maxWaiting) waiting.delete(oldest);
  });
  const write = async (): Promise<void> => {
    const taken = [...waiting];
    if (taken.length === 0) return;
    try {
      await store.write(
        taken.flatMap(([, parts]) => parts),
        clock.now(),
      );
      // A minute that has grown meanwhile is written again.
      for (const [name, parts] of taken) if (waiting.get(name) === parts) waiting.delete(name);
    } catch (error) {
      report(error);
    }
  };
  const task = repeatTask(ports, { firstMs: lookMs, delayMs: lookMs, failure }, async () => {
    counter.turn();
    await write();
  });
  return {
    /** A sink of the pipeline's reports. */
    sink: counter,
    mark: (...marked: Parameters<IntervalCounter['mark']>) => counter.mark(...marked),
    /** Resolves when the last interval is stored, or could not be. */
    async stop(): Promise<void> {
      await task.stop();
      counter.end();
      if (task.hasBegun) await write();
    },
  };
}

function toStored({ figures, groups, ...interval }: HistoryPart): StoredPart {
  return { ...interval, text: writePart({ figures, groups }) };
}
