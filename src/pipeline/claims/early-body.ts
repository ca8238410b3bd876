import { isRefusal } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { Exchange } from '../exchange.ts';
import { tooManyJoins } from './claim-refusals.ts';
import type { RunningClaims } from './running-claims.ts';

/**
 * Reads the body of a request before it is admitted, unless that was done before. A key has some such bodies in memory at a time,
 * each until `dropBody`.
 */
export async function readBodyEarly(
  exchange: Exchange,
  keyId: string,
  claims: Pick<RunningClaims, 'readBody'>,
): Promise<Uint8Array | Refusal> {
  if (exchange.body !== null) return exchange.body;
  exchange.bodyTurn ??= await claims.readBody(keyId);
  if (exchange.bodyTurn === null) return tooManyJoins();
  const body = await exchange.client.readBody();
  if (!isRefusal(body)) exchange.body = body;
  return body;
}

/** The body of a request is not needed any more. */
export function dropBody(exchange: Pick<Exchange, 'body' | 'bodyTurn'>): void {
  exchange.body = null;
  exchange.bodyTurn?.();
  exchange.bodyTurn = null;
}
