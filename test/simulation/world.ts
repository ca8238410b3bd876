import type { Chance } from './chance.ts';
import type { Checks } from './checks/checks.ts';
import type { Counts } from './counts.ts';
import type { MemoryDatabase } from './database/memory-database.ts';
import type { Plan } from './plan.ts';
import type { VirtualTime } from './virtual-time.ts';

/** What all parts of one history share. */
export interface World {
  readonly time: VirtualTime;
  /** The choices of the network: apart from those of the plan. */
  readonly chance: Chance;
  readonly plan: Plan;
  readonly database: MemoryDatabase;
  readonly counts: Counts;
  readonly checks: Checks;
  /** Notes what happened, for a history that is printed. */
  readonly note: (text: () => string) => void;
}
