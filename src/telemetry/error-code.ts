import type { ErrorCode } from '../shared/errors.ts';
import type { ExchangeSummary } from '../domain/exchange-summary.ts';

/** The code that the client was told; a client that left was told nothing. */
export function codeOf({ outcome, refusal }: ExchangeSummary): ErrorCode | null {
  return outcome === 'client_closed' ? null : (refusal?.code ?? null);
}
