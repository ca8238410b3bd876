import { html } from 'htm/preact';
import type { ComponentChildren, VNode } from 'preact';
import type { PresentedShadow as Shadow } from '../../../http/present/shadow.ts';
import {
  orDash,
  asWords,
  countsText,
  formatAmount,
  formatCount,
  formatDuration,
  formatTime,
} from '../../widgets/format.ts';
import { linkTo } from '../../route.ts';
import { DataTable } from '../../widgets/data-table.ts';
import type { Column } from '../../widgets/data-table.ts';
import { Facts } from '../../widgets/facts.ts';
import { Fault } from '../../widgets/fault.ts';
import { amountOf } from '../../widgets/amount.ts';
import { adminPath } from '../../api/admin-api.ts';
import { useAnswer, usePolling } from '../../api/use-loaded.ts';

/** How often the counts are read again, in milliseconds. */
const everyMs = 10_000;

/** The shadow routes with what was found by comparing; nothing where the config has none. */
export function ShadowList(): VNode | null {
  const asked = useAnswer<{ readonly data: readonly Shadow[] }>(adminPath('shadow'));
  usePolling(asked, everyMs);
  const { answer, error } = asked;
  if (answer === null || answer.data.length === 0) return html`<${Fault} text=${error} />`;
  return html`
    <section>
      <h2>Shadow traffic</h2>
      <p class="note">
        Copies of requests; their answers are compared and dropped. The counts are those of this gateway.
      </p>
      <${Fault} text=${error} />
      <ul class="cards large">
        ${answer.data.map((shadow) => html`<${ShadowCard} key=${shadow.model} shadow=${shadow} />`)}
      </ul>
    </section>
  `;
}

function ShadowCard({ shadow }: { readonly shadow: Shadow }): VNode {
  const { model, upstream, upstream_model: there, share, running, max_in_flight: most } = shadow;
  return html`
    <li>
      <h3>${model}</h3>
      <${Facts}
        facts=${[
          [
            'Goes to',
            html`<a href=${linkTo('upstreams', upstream)}>${upstream}</a> as <code>${there}</code>`,
          ],
          ['Share', `${percent(share)} of its requests`],
          ['In progress', `${formatCount(running)} of ${formatCount(most)}`],
          ['Ended', countsText(shadow.requests)],
          ['Left out', skippedText(shadow.skipped)],
          ['Spent today', spentText(shadow.budget)],
          ['Compared', comparedText(shadow.compared)],
          ['Since', formatTime(shadow.since)],
        ]}
      />
      <${Means} model=${model} means=${shadow.means} />
      <${LastFailure} failure=${shadow.last_failure} />
    </li>
  `;
}

/** A mean of both sides. */
interface Mean {
  readonly name: string;
  readonly answers: number | null;
  readonly shadows: number | null;
  readonly write: (value: number) => string;
}

const columns: readonly Column<Mean>[] = [
  { title: 'Mean', isName: true, cell: ({ name }) => name },
  { title: 'Answers', isNumber: true, cell: ({ answers, write }) => orDash(answers, write) },
  { title: 'Shadows', isNumber: true, cell: ({ shadows, write }) => orDash(shadows, write) },
  { title: 'Ratio', isNumber: true, cell: ratioText },
];

/** The means of the pairs that both finished. */
function Means({ model, means }: Pick<Shadow, 'model' | 'means'>): VNode {
  const { pairs, answers, shadows } = means;
  const rows: readonly Mean[] = [
    {
      name: 'characters',
      answers: answers.characters,
      shadows: shadows.characters,
      write: formatCount,
    },
    {
      name: 'first text',
      answers: answers.first_text_ms,
      shadows: shadows.first_text_ms,
      write: formatDuration,
    },
    { name: 'total time', answers: answers.total_ms, shadows: shadows.total_ms, write: formatDuration },
    {
      name: 'cost of 1,000',
      answers: numberOf(answers.cost),
      shadows: numberOf(shadows.cost),
      write: costText,
    },
  ];
  if (pairs === 0) return html`<p class="empty">No pair of answers has been compared yet.</p>`;
  return html`
    <${DataTable}
      caption=${`Means of ${formatCount(pairs)} pairs of answers of ${model}`}
      columns=${columns}
      rows=${rows}
      keyOf=${({ name }: Mean) => name}
    />
    <p class="note">
      Of ${formatCount(pairs)} ${pairs === 1 ? 'pair' : 'pairs'} that both finished. The cost of an answer is
      what its key was charged, that of a shadow is what its provider asks.
    </p>
  `;
}

function LastFailure({ failure }: { readonly failure: Shadow['last_failure'] }): VNode | null {
  if (failure === null) return null;
  const { at, outcome, cause, upstream_error: error } = failure;
  return html`
    <p>Latest failure: ${asWords(outcome)}, ${formatTime(at)}.</p>
    ${cause !== null && html`<p class="cause">${cause}</p>`}
    ${error?.message !== null && error?.message !== undefined && html`<p class="cause note">${error.message}</p>`}
  `;
}

function percent(share: number): string {
  return `${Number((share * 100).toPrecision(3))} %`;
}

function spentText({ amount, spent }: Shadow['budget']): ComponentChildren {
  return amount === null ? 'free' : html`${amountOf(spent)} of ${formatAmount(amount)}`;
}

/** Why requests got no shadow, in words. */
const reasons = {
  in_flight: 'too many in progress',
  budget: 'budget spent',
  upstream: 'upstream failing',
  permit: 'upstream without a free permit',
  stop: 'upstream without stop sequences',
} as const satisfies Record<keyof Shadow['skipped'], string>;

function skippedText(skipped: Shadow['skipped']): string {
  const named = Object.entries(reasons).map(([reason, words]) => [
    words,
    skipped[reason as keyof Shadow['skipped']] ?? 0,
  ]);
  return countsText(Object.fromEntries(named) as Record<string, number>);
}

function comparedText(compared: Shadow['compared']): string {
  const { same = 0, finish_reason: reason = 0, outcome = 0 } = compared;
  const all = same + reason + outcome;
  if (all === 0) return 'none compared';
  const others = [
    [reason, 'with another finish reason'],
    [outcome, 'with another outcome'],
  ] as const;
  const differing = others
    .filter(([count]) => count > 0)
    .map(([count, words]) => `${formatCount(count)} ${words}`);
  return [`${formatCount(same)} of ${formatCount(all)} ended alike`, ...differing].join(', ');
}

function numberOf(usd: string | null): number | null {
  return usd === null ? null : Number(usd);
}

/** What a thousand requests of the mean cost come to, in USD: that of one has many zeros. */
function costText(usd: number): string {
  return `$${Number((usd * 1_000).toPrecision(3))}`;
}

function ratioText({ answers, shadows }: Mean): string {
  if (answers === null || shadows === null || answers <= 0) return '–';
  return `× ${(shadows / answers).toFixed(2)}`;
}
