import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { Budget } from '../budgets/budget.ts';
import type { ApiKey } from '../keys/api-key.ts';
import { adviseWaiting, concurrencyDetail, unlimitedStarts } from './limits.ts';
import type { LimitDecision, Limits } from './limits.ts';

/** Keys that share limits. A key belongs to one group at most, by its name. */
export interface Group {
  /** The id under which its slots and its budget are kept. */
  readonly id: string;
  readonly name: string;
  /** Requests in progress at once of all its keys together; `null` for any number. */
  readonly concurrency: number | null;
  /** What all its keys together may spend in each period of a calendar; `null` for any amount. */
  readonly budget: Budget | null;
}

/** A slot of a group that a request has, and the name under which it has it, beside the slot of its key. */
export interface GroupSlot {
  readonly groupId: string;
  readonly name: string;
}

/** The groups of a config by their names. */
export type Groups = ReadonlyMap<string, Group>;

/** What takes a key out of its group on the command line, so that no group can be named so. */
export const noGroup = 'none';

/** How the id of a group begins: no id of a key does. */
export const groupIdPrefix = 'group:';

/** The id of the group of a name. */
export function groupIdOf(name: string): string {
  return groupIdPrefix + name;
}

/** The name of the group that has an id; `null` where it is that of a key. */
export function groupNameOf(id: string): string | null {
  return id.startsWith(groupIdPrefix) ? id.slice(groupIdPrefix.length) : null;
}

/**
 * The group of a key, `null` for one without. A key whose group is not in the config is refused: its limits are not known, and
 * without them it might spend any amount.
 */
export function findGroup({ group }: Pick<ApiKey, 'group'>, groups: Groups): Group | null | Refusal {
  if (group === null) return null;
  return (
    groups.get(group) ??
    refuse(
      'group_not_configured',
      `This key belongs to the group '${group}', which is not in the config of this server. Ask the operator to add it there, or to take the key out of it.`,
    )
  );
}

/** A number of requests in progress that no group reaches: that of a group without a limit. */
const unlimitedSlots = 2_147_483_647;

/** The limits under which a request takes one of the slots of a group, or waits for it. */
export function limitsOfGroup(
  { concurrency }: Pick<Group, 'concurrency'>,
  queueWaitMs: number,
): Pick<Limits, 'concurrency' | 'requestsPerMinute' | 'queueWaitMs'> {
  return { concurrency: concurrency ?? unlimitedSlots, requestsPerMinute: unlimitedStarts, queueWaitMs };
}

/** The group that has an id; `null` for the id of a key, and for a group that the config does not have. */
export function groupOf(id: string, groups: Groups): Group | null {
  const name = groupNameOf(id);
  return name === null ? null : (groups.get(name) ?? null);
}

/** Whether what the requests of a key cost is limited: each of them waits for its hold then. */
export function isSpendingLimited(
  { hasBalance, budget }: Pick<ApiKey, 'hasBalance' | 'budget'>,
  group: Group | null,
): boolean {
  return hasBalance || budget !== null || (group !== null && group.budget !== null);
}

/** The refusal of a request that got no slot of its group; `queueWaitMs` is how long it could wait. */
export function groupRefusal(
  { name, concurrency }: Pick<Group, 'name' | 'concurrency'>,
  decision: LimitDecision,
  queueWaitMs: number,
): Refusal {
  const { inFlight } = decision;
  const requests = concurrency === 1 ? 'one request' : `${concurrency} requests`;
  return refuse(
    'concurrency_limit_exceeded',
    `All keys of the group '${name}' together may have ${requests} in progress at once, and have ${inFlight}. ` +
      adviseWaiting(decision, queueWaitMs, queueWaitMs === 0 ? 'this key' : 'the group'),
    { limit: concurrencyDetail('group', concurrency, inFlight) },
  );
}
