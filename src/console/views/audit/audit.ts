import { html } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import type { VNode } from 'preact';
import type { PresentedAuditLine } from '../../../http/present/audit.ts';
import type { PresentedList } from '../../../http/present/list.ts';
import { adminPath, callAdmin } from '../../api/admin-api.ts';
import { useLoaded } from '../../api/use-loaded.ts';
import { boundsOf, readTime, timeParameters } from '../../chosen-time.ts';
import type { TimeName } from '../../chosen-time.ts';
import { goTo, linkTo } from '../../route.ts';
import { searchedText } from '../../searched-text.ts';
import type { Route } from '../../route.ts';
import { DataTable, textColumn } from '../../widgets/data-table.ts';
import type { Column } from '../../widgets/data-table.ts';
import { Fault } from '../../widgets/fault.ts';
import { Field, Select, submitBy } from '../../widgets/field.ts';
import { asWords, formatTime, orDash } from '../../widgets/format.ts';
import { shownName } from '../../widgets/name.ts';
import { boundsText, TimeChoice } from '../../widgets/time-choice.ts';
import { actions, actionText, writeValue } from './write-act.ts';

type Line = PresentedAuditLine;

const timeNames: readonly TimeName[] = ['24h', 'today', '7d', '30d'];

/** How many lines a page has. */
const pageSize = 100;

/** What operators did, newest first: who, by what way, what was before and what is now. */
export function Audit({ route: { query } }: { readonly route: Route }): VNode {
  const time = readTime(query, timeNames, '30d');
  const wanted = { action: query.get('action'), search: query.get('search') };
  const before = query.get('before');
  const name = JSON.stringify([time, wanted, before]);
  const { answer, error, isWaiting, reload } = useLoaded(name, async (signal) => {
    const bounds = boundsOf(time, Date.now());
    const path = adminPath('audit', { ...bounds, ...wanted, before, limit: pageSize });
    return { bounds, page: await callAdmin<PresentedList<Line>>(path, { signal }) };
  });
  const linkWith = (changed: Readonly<Record<string, string | null>>): string =>
    linkTo('audit', null, { ...timeParameters(time), ...wanted, ...changed });
  return html`
    <div class="row">
      <${TimeChoice}
        time=${time}
        names=${timeNames}
        onChange=${(next: typeof time) => goTo(linkWith(timeParameters(next)))}
      />
      <${Select}
        label="What"
        value=${wanted.action ?? ''}
        options=${[['', 'everything'], ...actions]}
        onChange=${(action: string) => goTo(linkWith({ action }))}
      />
      <${SearchForm}
        search=${wanted.search ?? ''}
        onSearch=${(search: string) => goTo(linkWith({ search }))}
      />
      <button type="button" onClick=${reload}>Refresh</button>
    </div>
    <${Fault} text=${error} />
    <p class="note" role="status">
      ${isWaiting ? 'Reading …' : answer !== null && `${boundsText(answer.bounds)}.`}
    </p>
    ${
      answer !== null &&
      html`
        <${DataTable}
          caption="Audit, newest first"
          columns=${columns}
          rows=${answer.page.data}
          keyOf=${({ number }: Line) => String(number)}
          empty="Nothing that was changed fits. Choose a longer time, or take the search away."
        />
        <nav class="row" aria-label="Pages">
          ${before !== null && html`<a href=${linkWith({})}>Newest</a>`}
          ${answer.page.next !== null && html`<a href=${linkWith({ before: answer.page.next })}>Older</a>`}
        </nav>
      `
    }
  `;
}

interface SearchProps {
  readonly search: string;
  readonly onSearch: (search: string) => void;
}

function SearchForm({ search, onSearch }: SearchProps): VNode {
  const [typed, setTyped] = useState(search);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => setTyped(search), [search]);
  const show = (): void => {
    const { text, fault } = searchedText(typed);
    setError(fault);
    if (fault === null) onSearch(text);
  };
  return html`
    <form class="row" role="search" aria-label="Audit" onSubmit=${submitBy(show)}>
      <${Field}
        label="A key, a person or a value"
        type="search"
        value=${typed}
        onInput=${setTyped}
        autocomplete="off"
      />
      <button>Search</button>
      <${Fault} text=${error} />
    </form>
  `;
}

const ways: Readonly<Record<Line['way'], string>> = {
  admin_api: 'admin API',
  console: 'console',
  cli: 'command line',
  code: 'code',
  config: 'config',
  declared_keys: 'declared keys',
  start: 'start',
};

const columns: readonly Column<Line>[] = [
  { title: 'Time', isName: true, cell: ({ created_at: at }) => formatTime(at) },
  {
    title: 'What',
    cell: ({ action, times }) => `${actionText(action)}${times > 1 ? ` (${times} times)` : ''}`,
  },
  {
    title: 'Of',
    cell: ({ subject, key_id: keyId }) => {
      const name = orDash(subject ?? keyId, shownName);
      return keyId === null
        ? html`<span class="long">${name}</span>`
        : html`<a class="long" href=${linkTo('keys', keyId)}>${name}</a>`;
    },
  },
  {
    title: 'Before and after',
    isText: true,
    cell: ({ action, changes }) => html`<${Changes} action=${action} changes=${changes} />`,
  },
  {
    title: 'Who',
    cell: ({ actor, way }) => html`<span class="long">${shownName(actor ?? 'unnamed')}, ${ways[way]}</span>`,
  },
  textColumn('Address', ({ address }) => address),
  {
    title: 'Result',
    cell: ({ result }) =>
      html`<span class=${`badge ${result === 'done' ? 'good' : 'bad'}`}>${asWords(result)}</span>`,
  },
];

/** From how many fields on they are shown at a wish only: a key that is made has many. */
const minFolded = 4;

/** Fields before and after a change. */
function Changes({ action, changes }: Pick<Line, 'action' | 'changes'>): VNode | string {
  if (changes.length === 0) return '–';
  const list = html`
    <ul class="log">
      ${changes.map(
        ({ field, before, after }) =>
          html`<li key=${field}>
            ${asWords(field)}: <s>${writeValue(action, field, before)}</s> →${' '}<strong
              >${writeValue(action, field, after)}</strong
            >
          </li>`,
      )}
    </ul>
  `;
  if (changes.length < minFolded) return list;
  return html`
    <details>
      <summary>${changes.length} fields</summary>
      ${list}
    </details>
  `;
}
