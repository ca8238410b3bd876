import { isPlainObject } from '../../shared/parse-json.ts';
import type { Frame } from './dialect.ts';

/** What the codes of MiniMax mean, in words by which errors are classified; others are faults of its own. */
const meanings: ReadonlyMap<unknown, string> = new Map([
  [1001, 'timeout'],
  [1002, 'rate_limit_exceeded'],
  [1004, 'authentication_error'],
  [1008, 'billing_error'],
  [1026, 'content_filter'],
  [1027, 'content_filter'],
  [1039, 'rate_limit_exceeded'],
  [1041, 'rate_limit_exceeded'],
  [2013, 'invalid_request_error'],
  [2045, 'rate_limit_exceeded'],
  [2049, 'authentication_error'],
  [2056, 'rate_limit_exceeded'],
]);

/** The statuses of meanings that have none in their words. */
const statuses: Readonly<Record<string, number>> = { billing_error: 402 };

/**
 * The error of a frame's `base_resp`: MiniMax reports errors there, under a good status, without choices or beside them.
 * `null` where it reports a success, and for a frame without one.
 */
export function errorInBaseResponse({ base_resp: found }: Frame): object | null {
  if (!isPlainObject(found)) return null;
  const { status_code: number, status_msg: message } = found;
  if (typeof number !== 'number' || number === 0) return null;
  const code = meanings.get(number) ?? `base_resp_${number}`;
  return { code, message, ...(statuses[code] === undefined ? {} : { status: statuses[code] }) };
}
