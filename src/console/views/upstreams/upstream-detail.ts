import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { Figure, Figures } from '../../widgets/figure.ts';
import { asWords, formatCount, formatTime } from '../../widgets/format.ts';
import { CircuitBadge, CircuitText } from './circuit-text.ts';
import { DoctorRun } from './doctor-run.ts';
import { LimiterText } from './limiter-text.ts';
import { RoutesTable } from './routes-table.ts';
import { Health } from './upstream-card.ts';
import type { Upstream } from './use-upstreams.ts';
import { CountBars } from '../../widgets/count-bars.ts';

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
      <${Figure} label="In progress" value=${running === null ? '–' : formatCount(running)} />
      <${Figure} label="Last answer" isText=${true} value=${lastOk === null ? '–' : formatTime(lastOk)} />
      <${Figure}
        label="Last failure"
        isText=${true}
        value=${lastFailed === null ? '–' : formatTime(lastFailed)}
      />
    <//>
  `;
}
