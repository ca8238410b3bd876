import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { linkTo } from '../../route.ts';
import { asWords, countsText, formatCount, formatTime, formatDuration } from '../../widgets/format.ts';
import { UpstreamState } from '../../widgets/badges.ts';
import { shownName } from '../../widgets/name.ts';
import { Facts } from '../../widgets/facts.ts';
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
      <h2><a href=${linkTo('upstreams', name)}>${shownName(name)}</a></h2>
      <${Health} upstream=${upstream} now=${now} isBrief=${true} />
      <${Facts}
        facts=${[
          ['Address', origin],
          ['Protocol', dialect],
          ['In progress', running === null ? 'not known' : formatCount(running)],
          ['Limits', limiter && usageOf(limiter)],
          ['Attempts', countsText(attempts)],
          ['Violations', countsText(violations)],
        ]}
      />
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
    ${pausedUntil !== null && html`<p>Paused by the provider (retry-after) until ${formatTime(pausedUntil)}.</p>`}
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
            <li key=${`${place} ${model}`}>${shownName(model)}: ${health !== null && modelText(health)}</li>
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
  if (pausedUntil !== null) return `paused by the provider (retry-after) until ${formatTime(pausedUntil)}`;
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

type Circuit = Upstream['circuit'];

const badges = {
  closed: ['good', 'circuit closed'],
  open: ['bad', 'circuit open'],
  half_open: ['warning', 'circuit half open'],
} as const;

interface CircuitProps {
  readonly circuit: Circuit;
  /** The gateway's time in milliseconds. */
  readonly now: number;
}

/** The state of a circuit, in words and in a colour. */
export function CircuitBadge({ circuit: { state } }: Pick<CircuitProps, 'circuit'>): VNode {
  const [mood, words] = badges[state];
  return html`<span class=${`badge ${mood}`}>${words}</span>`;
}

/** Since when a circuit is as it is, what comes next, and how near it is to opening. */
export function CircuitText({ circuit, now }: CircuitProps): VNode {
  const { state, open_since: openSince, only_key: onlyKey, window } = circuit;
  return html`
    ${openSince !== null && html`<p>Open since ${formatTime(openSince)}, for ${until(now, openSince)}.</p>`}
    ${onlyKey !== null && html`<p>Only the requests of the key ${onlyKey} failed, and only they are sent elsewhere.</p>`}
    ${state !== 'closed' && html`<p>${trialText(circuit, now)}</p>`}
    ${state === 'closed' && html`<p class="note">${failuresText(circuit)}</p>`}
    ${
      window.attempts > 0 &&
      html`<p class="note">
        ${formatCount(window.failures)} of ${formatCount(window.attempts)} attempts failed in the last
        ${' '}${window.seconds} s; ${window.opens_at_share * 100} % of ${window.opens_from_attempts} or more
        open it.
      </p>`
    }
  `;
}

/** A length of time in whole seconds: it is written every second. */
function until(later: number, earlier: string): string {
  const seconds = Math.max(0, Math.round((later - Date.parse(earlier)) / 1_000));
  return seconds < 10 ? `${seconds} s` : formatDuration(seconds * 1_000);
}

function trialText({ on_trial: isOnTrial, trial_at: trialAt }: Circuit, now: number): string {
  if (isOnTrial) return 'A trial request runs; its answer closes the circuit.';
  if (trialAt === null) return 'The next request is a trial; its answer closes the circuit.';
  const seconds = Math.max(0, Math.ceil((Date.parse(trialAt) - now) / 1_000));
  return `Tried again at ${formatTime(trialAt)}, in ${seconds} s.`;
}

function failuresText({ failures_in_a_row: failures, opens_at_failures: most }: Circuit): string {
  const some = failures === 0 ? 'No failure' : failures === 1 ? '1 failure' : `${failures} failures`;
  return `${some} since the last success; ${most} one after the other open it.`;
}
