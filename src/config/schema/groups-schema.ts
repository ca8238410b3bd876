import { z } from 'zod';
import { budgetOf } from '../../domain/budgets/budget.ts';
import { groupIdOf, noGroup } from '../../domain/limits/groups.ts';
import type { Groups } from '../../domain/limits/groups.ts';
import { budgetOfConfig } from '../../shared/budget-values.ts';
import { groupName } from '../../shared/schema-values.ts';
import { requestLimit } from './values.ts';

/** The most groups of a config. */
const maxGroups = 1_000;

const group = z.strictObject({
  concurrency: requestLimit.optional().meta({
    description:
      'How many requests all keys of the group together may have in progress at a time; default: any number.',
    examples: [8],
  }),
  budget: budgetOfConfig
    .optional()
    .describe(
      'What all its keys together may spend in each period of the calendar: a text such as `500/month`, or its settings.',
    ),
});

/** The groups of a config, by name. */
export const groups = z
  .record(
    groupName.refine((name) => name !== noGroup, `'${noGroup}' means no group: choose another name`),
    group,
  )
  .refine((all) => Object.keys(all).length <= maxGroups, `expected ${maxGroups} groups or less`);

/** The groups of a checked config. */
export function groupsOf(given: z.output<typeof groups>): Groups {
  return new Map(
    Object.entries(given).map(([name, { concurrency = null, budget }]) => [
      name,
      { id: groupIdOf(name), name, concurrency, budget: budget === undefined ? null : budgetOf(budget) },
    ]),
  );
}
