import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { formatCount, formatDuration } from '../../widgets/format.ts';
import type { Upstream } from './use-upstreams.ts';

type Room = NonNullable<Upstream['room']>;

/** How an upstream's limits are used, what is left of them, and who waits. */
export function RoomText({ room }: { readonly room: Room }): VNode {
  const { paused_ms: paused, waiting, expected_wait_ms: expected } = room;
  return html`
    <ul>
      ${limitsOf(room).map(([name, text]) => html`<li key=${name}>${text}</li>`)}
    </ul>
    ${paused > 0 && html`<p>It asked for a pause, which ends in ${formatDuration(paused)}.</p>`}
    ${
      waiting > 0 &&
      html`<p>
        ${formatCount(waiting)} waiting; the next one that comes has to expect ${formatDuration(expected)}.
      </p>`
    }
  `;
}

/** How much of its limit of requests at a time is used, on one line. */
export function usageOf({ in_flight: inFlight, max_in_flight: most, waiting }: Room): string {
  const used = most === null ? formatCount(inFlight) : `${formatCount(inFlight)} of ${formatCount(most)}`;
  return waiting === 0 ? used : `${used}, ${formatCount(waiting)} waiting`;
}

/** A line for each limit, by a name of its own. */
function limitsOf(room: Room): readonly (readonly [string, string])[] {
  const {
    max_in_flight: most,
    starts_left: starts,
    tokens_left: tokens,
    learned_in_flight: learnedMost,
  } = room;
  return [
    ...(most === null
      ? []
      : [['flight', `${formatCount(room.in_flight)} of ${formatCount(most)} requests at a time`] as const]),
    ...(learnedMost === null
      ? []
      : [['bound', `${formatCount(learnedMost)} at a time is what its answers of 429 have shown`] as const]),
    ...(starts === null ? [] : [['starts', `${formatCount(starts)} starts left in this minute`] as const]),
    ...(tokens === null ? [] : [['tokens', `${formatCount(tokens)} tokens left in this minute`] as const]),
    ...room.learned.map(
      ({ name, limit, left }) =>
        [name, `${formatCount(left)} of ${formatCount(limit)} ${name} left, as its answers say`] as const,
    ),
  ];
}
