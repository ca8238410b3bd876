import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { formatCount, formatDuration, formatTime } from '../../widgets/format.ts';
import type { Upstream } from './use-upstreams.ts';

type Circuit = Upstream['circuit'];

const badges = {
  closed: ['good', 'circuit closed'],
  open: ['bad', 'circuit open'],
  half_open: ['warning', 'circuit half open'],
} as const;

interface Props {
  readonly circuit: Circuit;
  /** The gateway's time in milliseconds. */
  readonly now: number;
}

/** The state of a circuit, in words and in a colour. */
export function CircuitBadge({ circuit: { state } }: Pick<Props, 'circuit'>): VNode {
  const [mood, words] = badges[state];
  return html`<span class=${`badge ${mood}`}>${words}</span>`;
}

/** Since when a circuit is as it is, what comes next, and how near it is to opening. */
export function CircuitText({ circuit, now }: Props): VNode {
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
