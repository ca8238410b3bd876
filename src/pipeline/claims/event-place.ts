import type { EventNumbers } from '../../protocol/answer-writer.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { ClientConnection } from '../client-connection.ts';
import { eventOfOtherRun, malformedEventId, nothingToGoOnWith, placeWithoutName } from './claim-refusals.ts';
import type { AnswerSource, ClaimedRun } from './claimed-run.ts';

/** The event behind which a client wants an answer to go on. */
export interface EventPlace {
  /** The beginning of the ids of its run, without the dash; `null` where the client has sent a number alone. */
  readonly run: string | null;
  /** Counted from 0. */
  readonly number: number;
}

/** An id of an event, as `eventIdPrefix` begins it, or its number alone. */
const placePattern = /^(?:([0-9a-f]{8})-)?(\d{1,15})$/;

/** Reads the event that a client has got last, from its header; `null` where it has not sent one. */
export function readPlace({
  claim,
  lastEventId,
}: Pick<ClientConnection, 'claim' | 'lastEventId'>): EventPlace | Refusal | null {
  if (lastEventId === undefined) return null;
  if (claim === undefined) return placeWithoutName();
  const [, run = null, number = null] = placePattern.exec(lastEventId) ?? [];
  return number === null ? malformedEventId() : { run, number: Number(number) };
}

/** How the events of a run's stream are numbered for a client, from behind a place on, which may be none of this run. */
export function numbersFrom(
  { eventIds }: Pick<ClaimedRun, 'eventIds'>,
  { request }: Pick<AnswerSource, 'request'>,
  place: EventPlace | null,
): EventNumbers | Refusal {
  if (place === null) return { idPrefix: eventIds, after: -1 };
  if (!request.stream) return nothingToGoOnWith();
  // Another run of the same claim has another text, of which its rest would be no rest.
  if (place.run !== null && `${place.run}-` !== eventIds) return eventOfOtherRun();
  return { idPrefix: eventIds, after: place.number };
}
