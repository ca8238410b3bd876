import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { linkTo } from '../../route.ts';
import type { Column } from '../../widgets/data-table.ts';
import { formatAmount, formatCount, formatShort } from '../../widgets/format.ts';
import { BudgetBar, usedPercent } from './budget-bar.ts';
import { KeyState, stateOf } from './key-state.ts';
import type { Key } from './types.ts';

/** The columns of the list of keys. Amounts are sorted by their nearest numbers, and shown as they are. */
export const keyColumns: readonly Column<Key>[] = [
  {
    title: 'Name',
    isName: true,
    sortBy: ({ name }) => name,
    cell: ({ id, name }) => html`<a class="long" href=${linkTo('keys', id)}>${name}</a>`,
  },
  { title: 'State', sortBy: stateOf, cell: (key) => html`<${KeyState} of=${key} />` },
  {
    title: 'In progress',
    isNumber: true,
    sortBy: ({ in_flight: running }) => running,
    cell: writeRunning,
  },
  {
    title: 'Balance',
    isNumber: true,
    sortBy: ({ balance }) => (balance === null ? null : Number(balance)),
    cell: ({ balance }) => (balance === null ? '–' : formatAmount(balance)),
  },
  {
    title: 'Spent',
    isNumber: true,
    sortBy: ({ spent }) => Number(spent),
    cell: ({ spent }) => formatAmount(spent),
  },
  {
    title: 'Budget',
    sortBy: ({ budget }) => (budget === null ? null : usedPercent(budget)),
    cell: writeBudget,
  },
  { title: 'Group', sortBy: ({ group }) => group, cell: ({ group }) => group ?? '–' },
  { title: 'Limits', cell: ({ limits }) => writeLimits(limits) },
];

/** How many of its slots a key uses. */
export function writeRunning({ in_flight: running, limits }: Key): string {
  return `${formatCount(running)} of ${formatCount(limits.concurrency)}`;
}

function writeBudget({ name, budget }: Key): VNode | string {
  return budget === null ? '–' : html`<div class="budget"><${BudgetBar} budget=${budget} of=${name} /></div>`;
}

function writeLimits(limits: Key['limits']): string {
  const { requests_per_minute: requests, tokens_per_minute: tokens, tokens_per_day: daily } = limits;
  return [
    `${formatShort(requests)} requests/min`,
    ...(tokens === null ? [] : [`${formatShort(tokens)} tokens/min`]),
    ...(daily === null ? [] : [`${formatShort(daily)} tokens/day`]),
  ].join(', ');
}
