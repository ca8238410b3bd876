import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { formatCount, formatDuration, formatWait } from '../../widgets/format.ts';
import { limitsOf, usageOf } from './limit-texts.ts';
import type { UpstreamLimiter } from './limit-texts.ts';

/** How the limits of an upstream and of its models are used, what is left of them, and who waits. */
export function LimiterText({ limiter }: { readonly limiter: UpstreamLimiter }): VNode {
  const { paused_ms: paused, pauses, models, waiting, expected_wait_ms: expected } = limiter;
  return html`
    <ul>
      ${limitsOf(limiter).map(([name, text]) => html`<li key=${name}>${text}</li>`)}
      ${models.map((limits) => html`<li key=${`model ${limits.model}`}>${limits.model}: ${usageOf(limits)}</li>`)}
    </ul>
    ${paused > 0 && html`<p>It asked for a pause, which ends in ${formatDuration(paused)}.</p>`}
    ${pauses.map(
      ({ model, paused_ms: left }) =>
        html`<p key=${model}>
          It asked for a pause of ${model ?? 'what is passed on'}, which ends in ${formatDuration(left)}.
        </p>`,
    )}
    ${
      waiting > 0 &&
      html`<p>
        ${formatCount(waiting)} waiting; the next one that comes has to expect about ${formatWait(expected)}.
      </p>`
    }
  `;
}
