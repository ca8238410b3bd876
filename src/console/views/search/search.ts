import { html } from 'htm/preact';
import { useEffect } from 'preact/hooks';
import type { VNode } from 'preact';
import { adminPath, callAdmin } from '../../api/admin-api.ts';
import { useLoaded } from '../../api/use-loaded.ts';
import { linkTo } from '../../route.ts';
import type { Route } from '../../route.ts';
import { DataTable } from '../../widgets/data-table.ts';
import type { Column } from '../../widgets/data-table.ts';
import { Fault } from '../../widgets/fault.ts';
import { formatCount } from '../../widgets/format.ts';
import { shownName } from '../../widgets/name.ts';
import { PlaceHeading } from '../../widgets/place-heading.ts';
import { stateOf } from '../keys/types.ts';
import type { Group, Key, Page } from '../keys/types.ts';
import type { Upstream } from '../upstreams/use-upstreams.ts';
import { recordsLink } from '../usage/usage-query.ts';
import { findRequestIds, maxSearched } from './find-requests.ts';

/** How many keys are shown; the view Keys has all of them. */
const maxKeys = 20;

/** Something that was found, and where it is shown. */
interface Found {
  readonly kind: 'request' | 'key' | 'group' | 'model' | 'upstream';
  readonly name: string;
  readonly note: string;
  readonly link: string;
}

/** What has a text in its name or id: requests, keys, groups, models and upstreams. */
export function Search({ route }: { readonly route: Route }): VNode {
  const text = (route.query.get('q') ?? '').trim();
  const { answer, error, isWaiting } = useLoaded(text === '' ? null : text, (signal) =>
    findAll(text, signal),
  );
  const [only, another] = answer?.found ?? [];
  useEffect(() => {
    // In the place of the list: the way back would lead to it, and from there here again.
    if (only !== undefined && another === undefined && only.kind === 'request') location.replace(only.link);
  }, [answer]);
  return html`
    <${PlaceHeading} place=${text}>${text === '' ? 'Nothing is searched for' : text}<//>
    <${Fault} text=${error} />
    <p class="note" role="status">${isWaiting ? 'Searching …' : ''}</p>
    ${
      text === '' &&
      html`<p class="empty">
        Press <kbd>/</kbd> and enter a part of the name of a key, group, model or upstream, or the id of a
        request.
      </p>`
    }
    ${
      answer !== null &&
      html`
        <${DataTable}
          caption="Found"
          columns=${columns}
          rows=${answer.found}
          keyOf=${({ kind, link }: Found) => `${kind} ${link}`}
          empty=${`Nothing has this text in its name. ${
            answer.isPartOfId
              ? `Of requests, those in progress and the newest ${formatCount(maxSearched)} were searched: enter a whole id for an older one.`
              : 'Of a request, enter the id: req_ and 32 digits, or 4 of them or more.'
          }`}
        />
        <p>
          <a href=${`../docs/search?${new URLSearchParams({ q: text }).toString()}`}
            >Search the documentation</a
          >
        </p>
        ${
          answer.hasMoreKeys &&
          html`<p><a href=${linkTo('keys', null, { search: text })}>All keys with this text</a></p>`
        }
      `
    }
  `;
}

const columns: readonly Column<Found>[] = [
  { title: 'Kind', cell: ({ kind }) => kind },
  { title: 'Name', isName: true, cell: ({ name, link }) => html`<a href=${link}>${shownName(name)}</a>` },
  { title: 'What', cell: ({ note }) => note },
];

interface Findings {
  readonly found: readonly Found[];
  readonly hasMoreKeys: boolean;
  /** Whether the text can be a part of a request's id. */
  readonly isPartOfId: boolean;
}

/** The longest part of a key's name that the gateway searches, in characters. */
const maxKeySearch = 100;

async function findAll(text: string, signal: AbortSignal): Promise<Findings> {
  const read = <Answer>(path: string): Promise<Answer> => callAdmin<Answer>(path, { signal });
  const [ids, keys, groups, upstreams] = await Promise.all([
    findRequestIds(text, signal),
    read<Page<Key>>(adminPath('keys', { search: text.slice(0, maxKeySearch), limit: maxKeys })),
    read<Page<Group>>(adminPath('groups')),
    read<{ readonly data: readonly Upstream[] }>(adminPath('upstreams')),
  ]);
  const models = new Set(
    upstreams.data.flatMap(({ routes }) => routes?.data.map(({ model }) => model) ?? []),
  );
  const wanted = text.toLowerCase();
  const isFound = (name: string): boolean => name.toLowerCase().includes(wanted);
  const allTime = { from: null, to: null };
  return {
    found: [
      ...(ids ?? []).map((id) => found('request', id, 'its record', linkTo('usage', id))),
      ...keys.data.map((key) => found('key', key.name, `${stateOf(key)}, ${key.id}`, linkTo('keys', key.id))),
      ...groups.data
        .filter(({ name }) => isFound(name))
        .map(({ name }) => found('group', name, 'its requests', recordsLink({ group: name }, allTime))),
      ...[...models]
        .filter(isFound)
        .map((model) => found('model', model, 'its requests', recordsLink({ model }, allTime))),
      ...upstreams.data
        .filter(({ name }) => isFound(name))
        .map(({ name }) => found('upstream', name, 'its routes and state', linkTo('upstreams', name))),
    ],
    hasMoreKeys: keys.next !== null,
    isPartOfId: ids !== null,
  };
}

function found(kind: Found['kind'], name: string, note: string, link: string): Found {
  return { kind, name, note, link };
}
