import { noGroup } from '../../domain/limits/groups.ts';
import type { Groups } from '../../domain/limits/groups.ts';
import type { RunningRequests } from '../../domain/ports/running-requests.ts';
import type { ReadBudgetUse } from '../../operations/key-use.ts';
import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { listNames } from '../checked-input.ts';
import { presentGroup } from '../present/key.ts';
import { presentList } from '../present/list.ts';
import { addRoutes } from '../route-table.ts';
import { createRouter } from '../router.ts';
import type { Router } from '../router.ts';

/** The groups that keys may belong to, and what is read of them. */
export interface GroupReads {
  readonly groups: Groups;
  /** What some keys or groups have spent of their budgets, by their ids. */
  readonly budgetUse: ReadBudgetUse;
  /** The requests that keys or groups have in progress. */
  readonly running: Pick<RunningRequests, 'count'>;
}

/** Lists the groups of the config by name, with what their keys have spent and have in progress. */
export async function listGroups({ groups, budgetUse, running }: GroupReads) {
  const all = [...groups.values()];
  const [budgets, inFlight] = await Promise.all([budgetUse(all), running.count(all.map(({ id }) => id))]);
  const shown = all
    .toSorted((one, other) => (one.name < other.name ? -1 : 1))
    .map((group) => presentGroup(group, { budget: budgets.get(group.id), inFlight: inFlight.get(group.id) }));
  return presentList(shown, null);
}

/** The refusal of a group that a key is to get and that the config does not have; `null` for any other. */
export function findUnknownGroup(name: string | null | undefined, groups: Groups): Refusal | null {
  if (name === null || name === undefined || groups.has(name)) return null;
  // The config has no group of this name and can't get one, so the hint below would lead nowhere.
  if (name === noGroup)
    return refuse('invalid_value', `Invalid 'group': no group is named '${name}': write null for no group.`, {
      param: 'group',
    });
  const names = [...groups.keys()].toSorted();
  const known = names.length === 0 ? 'it has none' : `it has ${listNames(names)}`;
  return refuse(
    'invalid_value',
    `Invalid 'group': the config has no group '${name}': ${known}. Add it to the groups of the config first.`,
    { param: 'group' },
  );
}

/** The route `/admin/groups`. */
export function createGroupRoutes(groups: GroupReads): Router {
  return addRoutes(createRouter(), { 'GET /groups': () => listGroups(groups) });
}
