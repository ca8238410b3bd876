import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { PresentedRecord } from '../../../http/present/record.ts';
import type { ManagedKey } from '../../../http/present/managed-key.ts';
import { orDash, formatAmount, formatCount, formatTime, shortId, asWords } from '../../widgets/format.ts';
import { linkTo } from '../../route.ts';
import { shownName } from '../../widgets/name.ts';
import { Facts } from '../../widgets/facts.ts';
import type { Fact } from '../../widgets/facts.ts';
import { amountOf } from '../../widgets/amount.ts';
import { none } from './groups.ts';
import { recordsLink } from './usage-query.ts';

type Usage = NonNullable<PresentedRecord['usage']>;

/** What a request was and how far it got, in the words of `textgate show`. */
export function journeyOf(record: PresentedRecord, key: ManagedKey | null): readonly Fact[] {
  const { created_at: at, protocol, mode, model, tag, group, upstream, outcome, status, timings } = record;
  return [
    ['arrived', html`<time datetime=${at} title=${at}>${formatTime(at)}</time>`],
    ['key', keyLink(record.key_id, key)],
    ['limits of the key today', key === null ? null : limitsOf(key)],
    ['asked for', html`${protocol}, ${mode}, model ${filterLink('model', model)}`],
    ['tag', tag === null || tag === none ? tag : filterLink('tag', tag)],
    ['group', group && filterLink('group', group)],
    ['dispatched', `after ${formatCount(timings.queued_ms)} ms`],
    [
      'upstream',
      upstream === null ? 'none called yet' : html`<a href=${linkTo('upstreams', upstream)}>${upstream}</a>`,
    ],
    ['outcome', outcome === null ? 'running' : `${outcome}, status ${status ?? '–'}`],
    ['code', record.code],
    ['cause', record.cause],
  ];
}

/** Where the tokens of a request come from. */
const usageSources = {
  upstream: 'reported by the upstream',
  counted: 'counted by the gateway',
  none: 'no usage',
} as const;

/** What a request cost, and why. */
export function moneyOf(record: PresentedRecord): readonly Fact[] {
  const { usage, usage_source: source, price, hold, charge } = record;
  return [
    ['hold', amountOf(hold)],
    ['tokens', orDash(usage, writeTokens)],
    ['usage', source && usageSources[source]],
    ['price', priceOf(price)],
    ['charge', amountOf(charge)],
  ];
}

/** The tokens of a request or of an attempt. */
function writeTokens(usage: Usage): string {
  const [input, cached, write, output, reasoning] = [
    usage.input_tokens,
    usage.cached_input_tokens,
    usage.cache_write_tokens,
    usage.output_tokens,
    usage.reasoning_tokens,
  ].map(formatCount);
  return `${input} in (${cached} cached, ${write} cache write), ${output} out (${reasoning} reasoning)`;
}

function keyLink(id: string, key: ManagedKey | null): VNode {
  const records = recordsLink({ key: id }, { from: null, to: null });
  return html`
    <a href=${linkTo('keys', id)}>${shownName(key?.name ?? shortId(id))}</a>,
    <a href=${records}>its requests</a>
  `;
}

function filterLink(name: 'model' | 'group' | 'tag', value: string): VNode {
  return html`<a href=${recordsLink({ [name]: value }, { from: null, to: null })}>${shownName(value)}</a>`;
}

function limitsOf({ limits }: ManagedKey): string {
  const { concurrency, requests_per_minute: perMinute, queue_wait_ms: waitMs } = limits;
  const wait = waitMs === 0 ? 'none' : `up to ${waitMs / 1_000} s`;
  return `${formatCount(concurrency)} at once, ${formatCount(perMinute)} per minute, wait for a slot: ${wait}`;
}

function priceOf(price: PresentedRecord['price']): string {
  if (Object.values(price).every((amount) => Number(amount) === 0)) return 'free';
  const [input, cached, write, output, request] = [
    price.input,
    price.cached_input,
    price.cache_write,
    price.output,
    price.request,
  ].map(formatAmount);
  return `${input} in, ${cached} cached, ${write} cache write, ${output} out per million; ${request} per request`;
}

type Attempt = PresentedRecord['attempts'][number];

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

function factsOf(attempt: Attempt): readonly Fact[] {
  const { model, started_ms: started, duration_ms: durationMs, cause, upstream_error: said, usage } = attempt;
  const words = said === null ? [] : [said.status, said.code, said.message].filter((part) => part !== null);
  return [
    ['model', model],
    [
      'time',
      `${started === null ? '' : `from ${formatCount(started)} ms `}for ${formatCount(durationMs)} ms`,
    ],
    ['cause', cause || null],
    ["the upstream's words", words.length === 0 ? null : words.join(', ')],
    ['counted by the upstream', usage && writeTokens(usage)],
  ];
}
