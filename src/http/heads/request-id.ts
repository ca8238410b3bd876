import type { Response } from '../router.ts';

/** The header that carries a request's id. */
export const requestIdHeader = 'x-request-id';

/** Where a response has its request's id: a field of its own, which ends with it and needs no look-up. */
export const requestId = Symbol('request id');

type Identified = Response & { [requestId]?: string | null };

/** An id as clients see it in `x-request-id`. */
export function presentRequestId(id: string): string {
  return `req_${id}`;
}

/** Gives a request its id, unless it has one from an earlier handler; returns whether the id is new. */
export function assignRequestId(response: Identified, nextId: () => string): boolean {
  if (typeof response[requestId] === 'string') return false;
  response[requestId] = nextId();
  return true;
}

/** The id that `assignRequestId` gave to the request of this response. */
export function requestIdOf(response: Identified): string {
  return String(response[requestId]);
}
