import { html } from 'htm/preact';
import type { VNode } from 'preact';
import {
  orDash,
  asWords,
  formatCount,
  formatTime,
  formatDuration,
  formatWait,
} from '../../widgets/format.ts';
import { Figure, Figures } from '../../widgets/facts.ts';
import { shownName } from '../../widgets/name.ts';
import { CountBars } from '../../widgets/count-bars.ts';
import { CircuitBadge, CircuitText, Health } from './upstream-card.ts';
import { DoctorRun } from './doctor-run.ts';
import { RoutesTable } from './routes-table.ts';
import type { Upstream } from './use-upstreams.ts';
import { limitsOf, usageOf } from './limit-texts.ts';
import type { UpstreamLimiter } from './limit-texts.ts';

interface Props {
  readonly upstream: Upstream;
  /** The gateway's time in milliseconds. */
  readonly now: number;
}

/** All that is known of an upstream. */
export function UpstreamDetail({ upstream, now }: Props): VNode {
  const { probes, passthrough, attempts, violations, limiter } = upstream;
  return html`
    <${Facts} upstream=${upstream} />
    <div class="columns">
      <section>
        <h2>Health</h2>
        <${Health} upstream=${upstream} now=${now} />
        ${
          probes !== null &&
          html`
            <h3>Probes</h3>
            <p><${CircuitBadge} circuit=${probes} /></p>
            <${CircuitText} circuit=${probes} now=${now} />
          `
        }
      </section>
      ${
        limiter !== null &&
        html`<section>
          <h2>Limits</h2>
          <${LimiterText} limiter=${limiter} />
        </section>`
      }
      <section>
        <h2>Attempts since the start</h2>
        <${CountBars} label=${asWords} counts=${attempts} empty="No request was sent to it." />
      </section>
      <section>
        <h2>Violations of its protocol since the start</h2>
        <${CountBars} label=${asWords} counts=${violations} empty="No answer violated the protocol." />
      </section>
    </div>
    <section>
      <h2>Routes</h2>
      <${RoutesTable} routes=${upstream.routes} />
      ${
        passthrough.length > 0 &&
        html`
          <h3>Passthrough paths</h3>
          <ul>
            ${passthrough.map((path) => html`<li key=${path}><code>${path}</code></li>`)}
          </ul>
        `
      }
    </section>
    <section>
      <h2>Check</h2>
      <${DoctorRun} upstream=${upstream} />
    </section>
  `;
}

function Facts({ upstream }: Pick<Props, 'upstream'>): VNode {
  const { origin, dialect, running, last_ok_at: lastOk, last_failed_at: lastFailed } = upstream;
  return html`
    <${Figures}>
      <${Figure} label="Address" isText=${true} value=${origin} note=${`protocol: ${dialect}`} />
      <${Figure} label="In progress" value=${orDash(running, formatCount)} />
      <${Figure} label="Last answer" isText=${true} value=${orDash(lastOk, formatTime)} />
      <${Figure} label="Last failure" isText=${true} value=${orDash(lastFailed, formatTime)} />
    <//>
  `;
}

/** How the limits of an upstream and of its models are used, what is left of them, and who waits. */
function LimiterText({ limiter }: { readonly limiter: UpstreamLimiter }): VNode {
  const { paused_ms: paused, pauses, models, waiting, expected_wait_ms: expected } = limiter;
  return html`
    <ul>
      ${limitsOf(limiter).map(([name, text]) => html`<li key=${name}>${text}</li>`)}
      ${models.map((limits) => html`<li key=${`model ${limits.model}`}>${shownName(limits.model)}: ${usageOf(limits)}</li>`)}
    </ul>
    ${paused > 0 && html`<p>Paused by the provider (retry-after); ends in ${formatDuration(paused)}.</p>`}
    ${pauses.map(
      ({ model, paused_ms: left }) =>
        html`<p key=${model}>
          ${model === null ? 'What is passed on' : shownName(model)}: paused by the provider (retry-after);
          ends in ${formatDuration(left)}.
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
