import { isRefusal } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { admitAgain } from '../admission/admit.ts';
import type { Exchange } from '../exchange.ts';
import type { Ports } from '../ports.ts';
import { interruptedBy, refused } from '../results.ts';
import type { ExchangeResult } from '../results.ts';
import type { Admitted, Routed } from '../stages.ts';
import type { RoomVisit } from './room-visit.ts';

/** The request as it goes on, with its place. */
interface Placed<Waiting> {
  readonly kind: 'placed';
  readonly now: Waiting;
}

/**
 * Takes the place of a request's first attempt at one of some upstreams. A request that waited for it is checked again, by
 * `refuseNow`, too: its key may have been revoked or changed meanwhile. Returns the request as it goes on, or how it ends; a
 * place that it has then is given back with the end of its visit.
 */
export async function takePlace<Waiting extends Admitted | Routed>(
  visit: RoomVisit,
  ways: Parameters<RoomVisit['begin']>[0],
  waiting: Waiting,
  refuseNow: (now: Waiting) => Refusal | null,
  exchange: Exchange,
  ports: Ports,
): Promise<Placed<Waiting> | ExchangeResult> {
  const stopped = await visit.begin(ways);
  if (stopped !== null) return stopped;
  if (!visit.hasWaited) return { kind: 'placed', now: waiting };
  const now = await admitAgain(waiting, exchange, ports);
  if (isRefusal(now)) return refused(now);
  const refusal = refuseNow(now);
  if (refusal !== null) return refused(refusal);
  const { signal } = exchange.interruption;
  if (signal.aborted) return interruptedBy(signal, null);
  exchange.stage = now;
  return { kind: 'placed', now };
}
