import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { PresentedRecord } from '../../../../http/present/record.ts';
import { linkTo } from '../../../route.ts';
import { Facts } from '../../../widgets/facts.ts';
import type { Fact } from '../../../widgets/facts.ts';
import { asWords, formatCount } from '../../../widgets/format.ts';
import { writeTokens } from './request-facts.ts';

export type Attempt = PresentedRecord['attempts'][number];

/** Results that are as they should be, or the client's own doing; all others are faults. */
const moods: Readonly<Record<string, string>> = {
  ok: 'good',
  refused: 'plain',
  interrupted: 'plain',
  hedge_lost: 'plain',
};

/** The calls of upstreams in their order: how each ended, why, and what the upstream said. */
export function Attempts({ attempts }: { readonly attempts: readonly Attempt[] }): VNode {
  if (attempts.length === 0) return html`<p class="empty">No attempt has ended.</p>`;
  return html`
    <ol class="cards wide">
      ${attempts.map(
        (attempt, index) => html`
          <li key=${index}>
            <h3>
              Attempt ${index + 1}: <a href=${linkTo('upstreams', attempt.upstream)}>${attempt.upstream}</a>
            </h3>
            <p>
              <span class=${`badge ${moods[attempt.result] ?? 'bad'}`}>${asWords(attempt.result)}</span>
            </p>
            <${Facts} facts=${factsOf(attempt)} />
          </li>
        `,
      )}
    </ol>
  `;
}

/** Records of earlier versions lack the start, the cause and the upstream's words. */
function factsOf({
  model,
  started_ms: startedMs,
  duration_ms: durationMs,
  ...rest
}: Attempt): readonly Fact[] {
  const started = (startedMs as number | null | undefined) ?? null;
  const said = rest.upstream_error ?? null;
  const words = said === null ? [] : [said.status, said.code, said.message].filter((part) => part !== null);
  return [
    ['model', model],
    [
      'time',
      `${started === null ? '' : `from ${formatCount(started)} ms `}for ${formatCount(durationMs)} ms`,
    ],
    ['cause', rest.cause || null],
    ["the upstream's words", words.length === 0 ? null : words.join(', ')],
    ['counted by the upstream', rest.usage === null ? null : writeTokens(rest.usage)],
  ];
}
