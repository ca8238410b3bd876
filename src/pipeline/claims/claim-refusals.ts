import type { ClaimName, Claims, StoredClaim } from '../../domain/ports/claims.ts';
import type { RecordPages } from '../../domain/ports/records.ts';
import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { formatUsd } from '../../shared/money.ts';
import { maxJoinsOfKey, maxJoinsOfRequest, maxLookUpsOfKey } from './running-claims.ts';

/** The header in which a client names a request that is to run once, however often it is sent. It is never forwarded. */
export const claimHeader = 'idempotency-key';

/** The header in which a client says which event of a stream it has got last. It is never forwarded. */
export const placeHeader = 'last-event-id';

/** When a client is to send a request again that runs elsewhere, or that too many wait for, in milliseconds. */
const retryMs = 1_000;

export function malformedName(): Refusal {
  return refuse(
    'invalid_value',
    `The header '${claimHeader}' must be 1 to 255 visible ASCII characters without spaces, such as a UUID.`,
    { param: claimHeader },
  );
}

export function malformedEventId(): Refusal {
  return refuse(
    'invalid_value',
    `The header '${placeHeader}' must be the id of an event of the stream that is to go on, as it was sent, such as 9f2c41ab-17.`,
    { param: placeHeader },
  );
}

export function placeWithoutName(): Refusal {
  return refuse(
    'invalid_value',
    `The header '${placeHeader}' says where a request goes on that was sent with an '${claimHeader}': send that header, too.`,
    { param: placeHeader },
  );
}

/** There is no stream of which a client could have got an event. */
export function nothingToGoOnWith(): Refusal {
  return refuse(
    'replay_unavailable',
    `There is no stream under this '${claimHeader}' that could go on behind an event: it failed at no cost, or was never begun, or is a whole answer. Send the request without '${placeHeader}'.`,
    { param: placeHeader },
  );
}

export function eventOfOtherRun(): Refusal {
  return refuse(
    'replay_unavailable',
    `The event in '${placeHeader}' is of an earlier run under this '${claimHeader}', which came to nothing: the answer is another one now. Send the request without '${placeHeader}' to get all of it.`,
    { param: placeHeader },
  );
}

export function otherRequest(): Refusal {
  return refuse(
    'idempotency_key_reused',
    `The header '${claimHeader}' was sent before with another request: another path, body, byte for byte, or 'x-textgate-max-cost'. Send a new one with each new request.`,
    { param: claimHeader },
  );
}

export function runsElsewhere(): Refusal {
  return refuse(
    'request_in_progress',
    `The request with this '${claimHeader}' is running in another process of this service. Send it again shortly.`,
    { retryAfterMs: retryMs },
  );
}

/** A process that has the request, or may have it, says nothing. */
export function processSilent(): Refusal {
  return refuse(
    'request_in_progress',
    'The request runs, or its answer is kept, in another process of this service, which does not answer now. Send it again shortly.',
    { retryAfterMs: retryMs },
  );
}

export function tooManyJoins(): Refusal {
  return refuse(
    'concurrency_limit_exceeded',
    `Too many clients wait for the same answers: ${maxJoinsOfRequest} may join one request, and ${maxJoinsOfKey} all requests of a key.`,
    { retryAfterMs: retryMs },
  );
}

export function tooManyLookUps(): Refusal {
  return refuse(
    'concurrency_limit_exceeded',
    `Too many requests of this key with an '${claimHeader}' came at a time: ${maxLookUpsOfKey} of them are looked up at once.`,
    { retryAfterMs: retryMs },
  );
}

export function tooLongToJoin(): Refusal {
  return refuse(
    'replay_unavailable',
    `The request with this '${claimHeader}' is running, and its answer is too long to be kept: it can't be joined any more.`,
    { param: claimHeader },
  );
}

/** A claim has ended, and its answer is not to be had: says what it was charged. */
export async function replayUnavailable(
  { requestId }: StoredClaim,
  { keyId }: ClaimName,
  store: Claims & Pick<RecordPages, 'findRecord'>,
): Promise<Refusal> {
  const record = await store.findRecord(requestId, keyId);
  const charge = record === null ? '' : ` and was charged ${formatUsd(record.chargeNanos)} USD`;
  return refuse(
    'replay_unavailable',
    `The request with this '${claimHeader}' was answered before: it is ${requestId}${charge}. Its answer is not kept any more, or was cut off. To have it answered anew, send another '${claimHeader}'.`,
    { param: claimHeader },
  );
}

/** The same words for one that never was, one of another key, and one that is not kept. */
export function unknownResponse(): Refusal {
  return refuse(
    'response_not_found',
    `No response of this key with this id is kept. Those to requests with an '${claimHeader}' are, in the memory of the process that runs them, until a while after their end. A running request is also cancelled with POST /v1/key/requests/{id}/cancel.`,
    { param: 'response_id' },
  );
}
