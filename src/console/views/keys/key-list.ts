import { html } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import type { VNode } from 'preact';
import { textColumn, amountColumn, DataTable } from '../../widgets/data-table.ts';
import type { Column } from '../../widgets/data-table.ts';
import { adminPath } from '../../api/admin-api.ts';
import { useMayChange } from '../../api/session.ts';
import { useAnswer } from '../../api/use-loaded.ts';
import { goTo, linkTo } from '../../route.ts';
import { searchedText } from '../../searched-text.ts';
import { Fault } from '../../widgets/fault.ts';
import { Field, Select, submitBy } from '../../widgets/field.ts';
import { shownName } from '../../widgets/name.ts';
import { PlaceHeading } from '../../widgets/place-heading.ts';
import { formatCount, formatShort } from '../../widgets/format.ts';
import { GroupList, BudgetBar, usedPercent } from './budgets.ts';
import { keyStates, KeyState, stateOf } from './types.ts';
import type { Group, Key, Page } from './types.ts';

/** How many keys are on a page. */
const pageSize = 100;

/** What of the keys is shown, as the address has it. */
interface Wanted {
  readonly search: string | null;
  readonly status: string | null;
  /** The cursor of the page; `null` for the newest keys. */
  readonly before: string | null;
}

/** A page of the keys, newest first, with a search, and the groups. */
export function KeyList({ query }: { readonly query: URLSearchParams }): VNode {
  const wanted: Wanted = {
    search: query.get('search'),
    status: query.get('status'),
    before: query.get('before'),
  };
  const { search, status, before } = wanted;
  const asked = useAnswer<Page<Key>>(adminPath('keys', { limit: pageSize, search, status, before }));
  const groups = useAnswer<Page<Group>>(adminPath('groups'));
  const reload = (): void => {
    asked.reload();
    groups.reload();
  };
  return html`
    <section>
      <${PlaceHeading} place=${before}>All keys<//>
      <${Controls} wanted=${wanted} onReload=${reload} />
      <${Fault} text=${asked.error} />
      ${
        asked.answer !== null &&
        html`<${DataTable}
          caption="Keys, newest first"
          columns=${keyColumns}
          rows=${asked.answer.data}
          keyOf=${({ id }: Key) => id}
          empty=${html`<${Empty} wanted=${wanted} />`}
        />`
      }
      <${Pages} wanted=${wanted} next=${asked.answer?.next ?? null} />
    </section>
    <${GroupList} asked=${groups} />
  `;
}

interface ControlsProps {
  readonly wanted: Wanted;
  readonly onReload: () => void;
}

function Controls({ wanted, onReload }: ControlsProps): VNode {
  const [search, setSearch] = useState(wanted.search ?? '');
  const [error, setError] = useState<string | null>(null);
  const mayChange = useMayChange();
  useEffect(() => setSearch(wanted.search ?? ''), [wanted.search]);
  const show = (status: string | null): void => {
    const { text, fault } = searchedText(search);
    setError(fault);
    if (fault !== null) return;
    goTo(linkTo('keys', null, { search: text, status }));
  };
  return html`
    <form class="row" role="search" onSubmit=${submitBy(() => show(wanted.status))}>
      <${Field}
        label="Part of a name, or beginning of an id"
        type="search"
        value=${search}
        onInput=${setSearch}
      />
      <${Select}
        label="State"
        value=${wanted.status ?? ''}
        options=${[['', 'all'], ...keyStates.map((state) => [state, state])]}
        onChange=${show}
      />
      <button>Search</button>
      <button type="button" onClick=${onReload}>Refresh</button>
      ${mayChange && html`<a class="button primary" href=${linkTo('keys', 'new')}>Create key</a>`}
    </form>
    <${Fault} text=${error} />
  `;
}

function Empty({ wanted: { search, status, before } }: { readonly wanted: Wanted }): VNode {
  const mayChange = useMayChange();
  const all = html`<a href=${linkTo('keys')}>Show all keys</a>`;
  if (search !== null)
    return html`No ${status} key has this text in its name or at the beginning of its id. ${all}.`;
  if (status !== null) return html`No key is ${status}. ${all}.`;
  if (before !== null) return html`There is no older key. ${all}.`;
  return mayChange
    ? html`There is no key. <a href=${linkTo('keys', 'new')}>Create a key</a>: clients need one.`
    : html`There is no key. Who has the admin token can make one.`;
}

/** The ways to the other pages of the list. */
function Pages({ wanted, next }: { readonly wanted: Wanted; readonly next: string | null }): VNode | null {
  const { search, status, before } = wanted;
  if (next === null && before === null) return null;
  return html`
    <p class="actions">
      ${before !== null && html`<a href=${linkTo('keys', null, { search, status })}>Newest keys</a>`}
      ${next !== null && html`<a href=${linkTo('keys', null, { search, status, before: next })}>Older keys</a>`}
    </p>
  `;
}

/** The columns of the list of keys. */
const keyColumns: readonly Column<Key>[] = [
  {
    title: 'Name',
    isName: true,
    sortBy: ({ name }) => name,
    cell: ({ id, name }) => html`<a class="long" href=${linkTo('keys', id)}>${shownName(name)}</a>`,
  },
  { title: 'State', sortBy: stateOf, cell: (key) => html`<${KeyState} of=${key} />` },
  {
    title: 'In progress',
    isNumber: true,
    sortBy: ({ in_flight: running }) => running,
    cell: writeRunning,
  },
  amountColumn('Balance', ({ balance }) => balance),
  amountColumn('Spent', ({ spent }) => spent),
  {
    title: 'Budget',
    sortBy: ({ budget }) => (budget === null ? null : usedPercent(budget)),
    cell: writeBudget,
  },
  textColumn('Group', ({ group }) => group),
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
