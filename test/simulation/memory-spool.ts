import type { SettledRecord } from '../../src/domain/money/consumption.ts';
import type { SettlementSpool } from '../../src/domain/ports/records.ts';
import type { Actor } from './virtual-time.ts';
import type { World } from './world.ts';

/** The longest that the disk takes for a write, in milliseconds. */
const diskMs = 20;

/** The spool of one process; `disk` outlives it. */
export function createMemorySpool(
  disk: SettledRecord[],
  { time, chance }: World,
  actor: Actor,
): SettlementSpool {
  let freeMs = 0;
  /** Does work on the disk, in turn; what is not done when the process is killed is never done. */
  const inTurn = <Done>(work: () => Done): Promise<Done> => {
    const { promise, resolve } = Promise.withResolvers<Done>();
    freeMs = Math.max(freeMs, time.nowMs) + chance.between(0, diskMs);
    time.after(
      freeMs - time.nowMs,
      () => {
        const done = work();
        time.after(chance.between(0, 5), () => resolve(done), actor);
      },
      actor,
    );
    return promise;
  };
  return {
    open: () => inTurn(() => ({ records: [...disk], damaged: 0 })),
    append: (record) => inTurn(() => void disk.push(record)),
    clear: () => inTurn(() => void disk.splice(0)),
    close: () => inTurn(() => {}),
  };
}
