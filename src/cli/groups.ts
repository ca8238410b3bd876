import type { presentGroup } from '../http/present/group.ts';
import { callAdmin } from './admin-client.ts';
import { writeTable } from './output.ts';
import type { Json } from './output.ts';

/** Lists the groups of the config, as a table or JSON. */
export async function showGroups({ json }: Json): Promise<string> {
  const { data } = (await callAdmin('GET', '/admin/groups')) as {
    readonly data: readonly ReturnType<typeof presentGroup>[];
  };
  if (json) return JSON.stringify(data);
  if (data.length === 0)
    return 'the config has no groups: add them as `groups`, and give keys one by --group';
  return writeTable(
    ['GROUP', 'IN PROGRESS', 'AT ONCE', 'BUDGET', 'SPENT', 'AVAILABLE', 'FULL AGAIN AT'],
    data.map(({ name, concurrency, budget, in_flight: inFlight }) => [
      name,
      String(inFlight),
      concurrency === null ? 'any' : String(concurrency),
      budget === null ? '-' : `${budget.amount} per ${budget.per}`,
      budget?.spent ?? '-',
      budget?.available ?? '-',
      budget?.refills_at ?? '-',
    ]),
    { right: ['IN PROGRESS', 'AT ONCE', 'SPENT', 'AVAILABLE'], cut: ['GROUP'] },
  );
}
