import type { PresentedList } from '../../http/present/list.ts';
import type { ManagedKey, PresentedGroup } from '../../http/present/managed-key.ts';
import { count } from '../../shared/count.ts';
import { callAdmin } from '../admin-client.ts';
import { writeTable } from '../output.ts';
import type { Json } from '../output.ts';
import { searchedKeys } from './find-key.ts';

/**
 * Lists the groups of the config, as a table or JSON. The table also has how many keys each of them has, among the newest
 * 10,000 that are not revoked, and names those groups of keys that the config lacks: all requests of such keys are refused.
 */
export async function showGroups({ json }: Json): Promise<string> {
  const groups = await readGroups();
  if (json) return JSON.stringify(groups);
  const keys = countKeys(await searchedKeys());
  const known = new Set(groups.map(({ name }) => name));
  const missing = [...keys]
    .filter(([name]) => !known.has(name))
    .toSorted(([one], [other]) => (one < other ? -1 : 1));
  const refused =
    missing.length === 0
      ? ''
      : `\nnot in the config, so that all requests of their keys are refused: ${missing.map(([name, number]) => `${name} (${count(number, 'key')})`).join(', ')}`;
  if (groups.length === 0)
    return `the config has no groups: add them as \`groups\`, and give keys one by --group${refused}`;
  const table = writeTable(
    ['GROUP', 'KEYS', 'IN PROGRESS', 'BUDGET', 'SPENT', 'AVAILABLE', 'FULL AGAIN AT'],
    groups.map(({ name, concurrency, budget, in_flight: inFlight }) => [
      name,
      String(keys.get(name) ?? 0),
      concurrency === null ? String(inFlight) : `${inFlight} of ${concurrency}`,
      budget === null ? '-' : `${budget.amount} per ${budget.per}`,
      budget?.spent ?? '-',
      budget?.available ?? '-',
      budget?.refills_at ?? '-',
    ]),
    { right: ['KEYS', 'IN PROGRESS', 'SPENT', 'AVAILABLE'], cut: ['GROUP'] },
  );
  return table + refused;
}

/** The group of a key as it is shown with the key: its name, with what is left of its budget. */
export async function groupRows(name: string | null): Promise<readonly string[][]> {
  if (name === null) return [['group', 'none']];
  const group = (await readGroups()).find((one) => one.name === name);
  if (group === undefined)
    return [['group', `${name}, which is not in the config: its requests are refused`]];
  return [['group', name], ...budgetRows(group.budget, 'group budget', 'left for the group')];
}

async function readGroups(): Promise<readonly PresentedGroup[]> {
  const { data } = await callAdmin<PresentedList<PresentedGroup>>('GET', '/admin/groups');
  return data;
}

function countKeys(keys: readonly ManagedKey[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { group, revoked_at: revokedAt } of keys)
    if (group !== null && revokedAt === null) counts.set(group, (counts.get(group) ?? 0) + 1);
  return counts;
}

type Budget = NonNullable<ManagedKey['budget']>;

/** The budget of a key or of its group, what is spent of it and what is left, under titles. */
export function budgetRows(budget: Budget | null, title: string, left: string): readonly string[][] {
  if (budget === null) return [[title, 'none set']];
  const { amount, per, time_zone: timeZone, raise, available, spent, refills_at: refillsAt } = budget;
  return [
    [title, `${amount} per ${per} (${timeZone})`],
    ...raiseRows(raise, title),
    [left, `${available}, ${spent} are spent; full again at ${refillsAt}`],
  ];
}

/** A raise that has ended stays with the budget, and would look like one in force. */
function raiseRows(raise: Budget['raise'], title: string): readonly string[][] {
  if (raise === null) return [];
  const { amount, until } = raise;
  return Date.parse(until ?? '') > Date.now()
    ? [[`${title} raised by`, `${amount} until ${until}`]]
    : [[`${title} raise`, `none: that of ${amount} ended at ${until}`]];
}
