import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { readFailures } from '../../../http/admin/failures.ts';
import type { Refusal } from '../../../shared/errors.ts';
import { adminPath, callAdmin } from '../../api/admin-api.ts';
import { useLoaded } from '../../api/use-loaded.ts';
import { boundsOf, readTime, timeParameters } from '../../chosen-time.ts';
import type { Bounds, ChosenTime, TimeName } from '../../chosen-time.ts';
import { goTo, linkTo } from '../../route.ts';
import type { Route } from '../../route.ts';
import { DataTable } from '../../widgets/data-table.ts';
import type { Column } from '../../widgets/data-table.ts';
import { Facts } from '../../widgets/facts.ts';
import type { Fact } from '../../widgets/facts.ts';
import { Fault } from '../../widgets/fault.ts';
import { asWords, countsText, formatCount, formatTime, shortId } from '../../widgets/format.ts';
import { shownName } from '../../widgets/name.ts';
import { boundsText, TimeChoice } from '../../widgets/time-choice.ts';

const timeNames: readonly TimeName[] = ['15m', '1h', '24h', 'today', '7d', '30d'];

type PresentedFailures = Exclude<Awaited<ReturnType<typeof readFailures>>, Refusal>;
type Group = PresentedFailures['data'][number];
type Refusals = NonNullable<PresentedFailures['refusals']>;

interface Loaded {
  readonly bounds: Bounds;
  readonly failures: PresentedFailures;
}

/** Why requests failed in some time, and whose requests the gateway's own limits refused. */
export function Failures({ route: { query } }: { readonly route: Route }): VNode {
  const time = readTime(query, timeNames, 'today');
  const { answer, error, isWaiting, reload } = useLoaded<Loaded>(JSON.stringify(time), async (signal) => {
    const bounds = boundsOf(time, Date.now());
    return { bounds, failures: await callAdmin(adminPath('failures', { ...bounds }), { signal }) };
  });
  return html`
    <div class="row">
      <${TimeChoice}
        time=${time}
        names=${timeNames}
        onChange=${(next: ChosenTime) => goTo(linkTo('failures', null, timeParameters(next)))}
      />
      <button type="button" onClick=${reload}>Refresh</button>
    </div>
    <${Fault} text=${error} />
    <p class="note" role="status">
      ${isWaiting ? 'Reading …' : answer !== null && `${boundsText(answer.bounds)}.`}
    </p>
    ${answer !== null && html`<${Report} ...${answer} />`}
  `;
}

function Report({ bounds, failures }: Loaded): VNode {
  const { data, other, is_complete: isComplete, read_from: readFrom, refusals } = failures;
  return html`
    <section>
      <h2>Failures by cause</h2>
      ${
        !isComplete &&
        html`<p class="notice">
          There are so many that only those since ${formatTime(readFrom)} were read: choose a shorter time.
        </p>`
      }
      ${
        data.length === 0
          ? html`<p class="empty">
              No request has failed in this time. Choose a longer one, or look at ${' '}<a
                href=${linkTo('usage', 'records', { ...bounds })}
                >all requests of it</a
              >.
            </p>`
          : html`<ol class="cards wide">
              ${data.map((group, index) => html`<${Cause} key=${index} group=${group} bounds=${bounds} />`)}
            </ol>`
      }
      ${
        other.groups > 0 &&
        html`<p class="note">
          ${formatCount(other.groups)} further causes are not shown, of ${formatCount(other.requests)}${' '}
          requests.
        </p>`
      }
    </section>
    ${refusals !== null && html`<${RefusedKeys} refusals=${refusals} />`}
  `;
}

/** One cause: what went wrong, in whose words, how often, and what to do. */
function Cause({ group, bounds }: { readonly group: Group; readonly bounds: Bounds }): VNode {
  const { cause, result, upstream, model, requests, code } = group;
  const title = cause ?? asWords(result ?? code ?? 'failed');
  return html`
    <li>
      <h3>
        ${formatCount(requests)} ${requests === 1 ? 'request' : 'requests'}: ${title}${' '}
        ${
          upstream !== '' &&
          html`<span class="note"
            >at <a href=${linkTo('upstreams', upstream)}>${shownName(upstream)}</a>, ${shownName(model)}</span
          >`
        }
      </h3>
      <${Facts} facts=${factsOf(group, bounds)} />
    </li>
  `;
}

function factsOf(group: Group, { from, to }: Bounds): readonly Fact[] {
  const { upstream, model, result, status, code, words, remedy, keys, outcomes, request_id: id } = group;
  // Without a failed call the code is this gateway's, and no provider's.
  const said = result === null ? [] : [status, code, words].filter((part) => part !== null && part !== '');
  // The filter by cause finds a part of the words, which may be of a failed call before another one that answered.
  const cause = group.cause ?? result ?? code;
  const filter = { model: model || null, cause, from, to };
  return [
    ["the provider's words", said.length === 0 ? null : said.join(', ')],
    ['code', result === null ? code : null],
    ['what to do', remedy],
    [
      'when',
      group.first_at === group.last_at
        ? formatTime(group.last_at)
        : `first ${formatTime(group.first_at)}, last ${formatTime(group.last_at)}`,
    ],
    ['whom', `${formatCount(keys)} ${keys === 1 ? 'key' : 'keys'}; for the clients: ${countsText(outcomes)}`],
    [
      'requests',
      html`
        <a href=${linkTo('usage', 'records', filter)}
          >those with this cause<span class="unseen"> at ${upstream || 'no upstream'}</span></a
        >, the latest is${' '}
        <a href=${linkTo('usage', id)} title=${id}><code>${shortId(id)}</code></a>
      `,
    ],
  ];
}

type RefusedKey = Refusals['by_key'][number];

const refusedColumns: readonly Column<RefusedKey>[] = [
  {
    title: 'Key',
    isName: true,
    cell: ({ key_id: id, key_name: name }) =>
      html`<a href=${linkTo('keys', id)}>${shownName(name ?? shortId(id))}</a>`,
  },
  { title: 'Limit', cell: ({ limit }) => asWords(limit) },
  { title: 'Requests', isNumber: true, cell: ({ requests }) => formatCount(requests) },
];

/** Whose requests were refused, by which limit, the most first: by whole days in UTC, as they are summed up. */
function RefusedKeys({ refusals }: { readonly refusals: Refusals }): VNode {
  const days = daysText(refusals);
  const byLimit = Object.fromEntries(refusals.by_limit.map(({ limit, requests }) => [limit, requests]));
  return html`
    <section>
      <h2>Refused by the gateway's own limits</h2>
      <p class="note">${days}, in UTC: these sums are by days. Of all keys: ${countsText(byLimit)}.</p>
      <${DataTable}
        caption="Refused requests by key and limit"
        columns=${refusedColumns}
        rows=${refusals.by_key}
        keyOf=${({ key_id: id, limit }: RefusedKey) => `${id} ${limit}`}
        empty="No limit has refused a request."
      />
    </section>
  `;
}

function daysText({ from, to }: Refusals): string {
  const last = new Date(Date.parse(to) - 1).toISOString().slice(0, 10);
  const first = from.slice(0, 10);
  return first === last ? first : `${first} to ${last}`;
}
