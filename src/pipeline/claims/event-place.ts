import type { EventNumbers } from '../../protocol/answer-writer.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { ClientConnection } from '../client-connection.ts';
import { eventOfOtherRun, malformedEventId, nothingToGoOnWith, placeWithoutName } from './claim-refusals.ts';
import type { AnswerSource } from './claimed-run.ts';

/** The event behind which a client wants an answer to go on. */
export interface EventPlace {
  /** The beginning of the ids of its run, without the dash; `null` where the run is known otherwise. */
  readonly run: string | null;
  /** Counted from 0. */
  readonly number: number;
}

/** What the ids of the events of a run's stream begin with: enough of its id to tell it from others of its claim. */
export function eventIdsOf(requestId: string): string {
  return `${requestId.slice(-8)}-`;
}

/** An id of an event, as `eventIdsOf` begins it: a number alone would not say of which run it is. */
const placePattern = /^([0-9a-f]{8})-(\d{1,15})$/;

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

/** How the events of the stream of a request are numbered for a client, from behind a place on, which may be of another run. */
export function numbersFrom(
  requestId: string,
  { request, isNamed }: AnswerSource,
  place: EventPlace | null,
): EventNumbers | Refusal {
  const idPrefix = isNamed ? eventIdsOf(requestId) : null;
  if (place === null) return { idPrefix, after: -1 };
  if (!request.stream) return nothingToGoOnWith();
  // Another run of the same claim has another text, of which its rest would be no rest.
  if (place.run !== null && `${place.run}-` !== idPrefix) return eventOfOtherRun();
  return { idPrefix, after: place.number };
}
