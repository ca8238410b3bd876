import type { Response } from './router.ts';
/** The header that carries a request's id. */
export const requestIdHeader = 'x-request-id';

/** An id as clients see it in `x-request-id`. */
export function presentRequestId(id: string): string {
  return `req_${id}`;
}

const ids = new WeakMap<Response, string>();

/** Gives a request its id, unless it has one from an earlier handler; returns whether the id is new. */
export function assignRequestId(response: Response, nextId: () => string): boolean {
  if (ids.has(response)) return false;
  const id = nextId();
  ids.set(response, id);
  response.setHeader(requestIdHeader, presentRequestId(id));
  return true;
}

/** The id that `assignRequestId` gave to the request of this response. */
export function requestIdOf(response: Response): string {
  return String(ids.get(response));
}
