import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { linkTo } from '../../route.ts';
import { asWords, countsText, formatCount, formatTime } from '../../widgets/format.ts';
import { UpstreamState } from '../../widgets/upstream-state.ts';
import { CircuitBadge, CircuitText } from './circuit-text.ts';
import { usageOf } from './limit-texts.ts';
import type { Upstream } from './use-upstreams.ts';

interface Props {
  readonly upstream: Upstream;
  /** The gateway's time in milliseconds. */
  readonly now: number;
}

/** An upstream at a glance. */
export function UpstreamCard({ upstream, now }: Props): VNode {
  const { name, dialect, origin, running, limiter, attempts, violations } = upstream;
  return html`
    <li>
      <h2><a href=${linkTo('upstreams', name)}>${name}</a></h2>
      <${Health} upstream=${upstream} now=${now} isBrief=${true} />
      <dl class="facts">
        <div>
          <dt>Address</dt>
          <dd>${origin}</dd>
        </div>
        <div>
          <dt>Protocol</dt>
          <dd>${dialect}</dd>
        </div>
        <div>
          <dt>In progress</dt>
          <dd>${running === null ? 'not known' : formatCount(running)}</dd>
        </div>
        ${
          limiter !== null &&
          html`<div>
            <dt>Limits</dt>
            <dd>${usageOf(limiter)}</dd>
          </div>`
        }
        <div>
          <dt>Attempts</dt>
          <dd>${countsText(attempts)}</dd>
        </div>
        <div>
          <dt>Violations</dt>
          <dd>${countsText(violations)}</dd>
        </div>
      </dl>
    </li>
  `;
}

interface HealthProps extends Props {
  /** Whether a circuit without a failure needs no more than its badge. */
  readonly isBrief?: boolean;
}

/** How an upstream is: its state with the cause, and its circuit. */
export function Health({ upstream, now, isBrief = false }: HealthProps): VNode {
  const { state, cause, circuit, probes, availability, paused_until: pausedUntil } = upstream;
  return html`
    <p><${UpstreamState} state=${state} />${' '}<${CircuitBadge} circuit=${circuit} /></p>
    ${cause !== null && html`<p class="cause">${cause}</p>`}
    ${pausedUntil !== null && html`<p>It asked for a pause until ${formatTime(pausedUntil)}.</p>`}
    ${availability !== 'available' && html`<p>${availabilities[availability]}</p>`}
    <${TroubledModels} routes=${upstream.routes} />
    ${(!isBrief || !isCalm(circuit)) && html`<${CircuitText} circuit=${circuit} now=${now} />`}
    ${
      probes !== null &&
      probes.state !== 'closed' &&
      html`<p>The circuit of its probes is ${asWords(probes.state)}.</p>`
    }
  `;
}

/** How many models are named. */
const maxNamed = 5;

/** The models of an upstream that can't be used as usual. */
function TroubledModels({ routes }: Pick<Upstream, 'routes'>): VNode | null {
  const troubled = (routes?.data ?? []).filter(({ health }) => health !== null && !isWell(health));
  if (troubled.length === 0) return null;
  return html`
    <ul class="plain">
      ${troubled
        .slice(0, maxNamed)
        .map(
          ({ model, place, health }) => html`
            <li key=${`${place} ${model}`}>${model}: ${health !== null && modelText(health)}</li>
          `,
        )}
      ${troubled.length > maxNamed && html`<li>and ${formatCount(troubled.length - maxNamed)} more</li>`}
    </ul>
  `;
}

type ModelHealth = NonNullable<NonNullable<Upstream['routes']>['data'][number]['health']>;

function isWell({ availability, circuit }: ModelHealth): boolean {
  return availability === 'available' && circuit.state === 'closed' && circuit.only_key === null;
}

function modelText({ availability, circuit, paused_until: pausedUntil }: ModelHealth): string {
  if (pausedUntil !== null) return `it asked for a pause until ${formatTime(pausedUntil)}`;
  const words = circuit.open_since === null ? asWords(availability) : 'its circuit is open';
  return circuit.only_key === null ? words : `${words} for the key ${circuit.only_key} alone`;
}

function isCalm({ state, failures_in_a_row: failures, window }: Upstream['circuit']): boolean {
  return state === 'closed' && failures === 0 && window.failures === 0;
}

const availabilities = {
  failing: 'Models with other routes use it last.',
  cooling: 'No request is sent to it now.',
} as const;
