import { isRefusal } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import type { Target } from '../../domain/upstreams/sent-request.ts';
import { admitAgain } from '../admission/admit.ts';
import type { Exchange } from '../exchange.ts';
import type { Ports } from '../ports.ts';
import { interruptedBy, refused } from '../results.ts';
import type { ExchangeResult } from '../results.ts';
import type { Admitted, Routed } from '../stages.ts';
import { RequestPermits } from './request-permits.ts';
import type { PermitTerms } from './request-permits.ts';

/** Opens the permits of a request; `null` if none of its upstreams has limits. `terms` is asked for one that has. */
export function openPermits(
  ways: readonly Target[],
  terms: () => PermitTerms,
  exchange: Exchange,
  ports: Ports,
): RequestPermits | null {
  if (!ways.some((way) => ports.upstreamLimiters.limits(way))) return null;
  exchange.permits = new RequestPermits(terms(), exchange, ports);
  return exchange.permits;
}

/** The request as it goes on, with its permit. */
export interface Permitted<Waiting> {
  readonly kind: 'permitted';
  readonly now: Waiting;
}

/**
 * Acquires the permit of a request's first attempt at one of some upstreams. A request that waited for it is checked again, by
 * `refuseNow`, too: its key may have been revoked or changed meanwhile. Returns the request as it goes on, or how it ends; a
 * permit that it has then is released with `permits.end`.
 */
export async function acquirePermit<Waiting extends Admitted | Routed>(
  permits: RequestPermits,
  ways: Parameters<RequestPermits['begin']>[0],
  waiting: Waiting,
  refuseNow: (now: Waiting) => Refusal | null,
  exchange: Exchange,
  ports: Ports,
): Promise<Permitted<Waiting> | ExchangeResult> {
  const stopped = await permits.begin(ways);
  if (stopped !== null) return stopped;
  if (!permits.hasWaited) return { kind: 'permitted', now: waiting };
  const now = await admitAgain(waiting, exchange, ports);
  if (isRefusal(now)) return refused(now);
  const refusal = refuseNow(now);
  if (refusal !== null) return refused(refusal);
  const { signal } = exchange.interruption;
  if (signal.aborted) return interruptedBy(signal, null);
  exchange.stage = now;
  return { kind: 'permitted', now };
}
