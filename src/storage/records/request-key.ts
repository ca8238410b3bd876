import type { Statement, Taken } from '../engine.ts';
import { joined, raw, sql } from '../statements.ts';

/** A request's id as rows have it: its time in milliseconds since 1970, and the other 20 of its hexadecimal digits. */
export interface RequestKey {
  readonly createdAtMs: number;
  readonly tail: string;
}

/** A request's id: `req_`, and 32 hexadecimal digits of which the first 12 are its time. */
const idPattern = /^req_([0-9a-f]{12})([0-9a-f]{20})$/;

/** Takes an id apart that someone has given; `null` for a text that is the id of no request. */
export function findRequestKey(requestId: string): RequestKey | null {
  const [, time, tail] = idPattern.exec(requestId) ?? [];
  return time === undefined || tail === undefined ? null : { createdAtMs: Number.parseInt(time, 16), tail };
}

/** Takes the id of a request apart. Throws for a text that is none. */
export function requestKeyOf(requestId: string): RequestKey {
  const key = findRequestKey(requestId);
  if (key === null) throw new Error('the id of a request is not req_ and 32 hexadecimal digits');
  return key;
}

/** A request's id, as a fixed unit takes it. */
export const requestKey: Taken<{ readonly requestId: string }> = [
  ['created_at', 'bigint', ({ requestId }) => requestKeyOf(requestId).createdAtMs],
  ['tail', 'text', ({ requestId }) => requestKeyOf(requestId).tail],
];

/** Finds the row of the request of a fixed unit. */
export const isThisRequest = 'created_at = :created_at AND tail = unhex(:tail)';

/** Finds the rows of some requests. */
export function isOneOf(keys: readonly RequestKey[]): Statement {
  if (keys.length === 0) return raw('1 = 0');
  const listed = keys.map(({ createdAtMs, tail }) => sql`(CAST(${createdAtMs} AS BIGINT), unhex(${tail}))`);
  return sql`(created_at, tail) IN (VALUES ${joined(listed, ', ')})`;
}

/** Finds the rows behind that of a request, in the order of time. */
export function isBehind({ createdAtMs, tail }: RequestKey): Statement {
  return sql`(created_at, tail) > (${createdAtMs}, unhex(${tail}))`;
}

/** Finds the row of a request. */
export function isRequest({ createdAtMs, tail }: RequestKey): Statement {
  return sql`created_at = ${createdAtMs} AND tail = unhex(${tail})`;
}
