import type { ErrorCode } from '../shared/errors.ts';
import type { ExchangeSummary } from './exchange-summary.ts';

/** The error code in the client's answer; `null` for a client that disconnected and got none. */
export function codeOf({ outcome, refusal }: ExchangeSummary): ErrorCode | null {
  return outcome === 'client_closed' ? null : (refusal?.code ?? null);
}
