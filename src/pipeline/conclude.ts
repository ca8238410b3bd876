import type { Delivery } from './delivery/delivery.ts';
import type { Exchange } from './exchange.ts';
import { refusalOfResult } from './results.ts';
import type { Settled } from './results.ts';

/**
 * Sends the last bytes of a settled exchange: the end of an answer, or an error. Resolves when they are written, so
 * that a server that shuts down does not close the connection before that.
 */
export async function conclude(
  settled: Settled,
  { deliveries }: Pick<Exchange, 'deliveries'>,
): Promise<void> {
  await Promise.all(deliveries.map((delivery) => end(delivery, settled)));
}

async function end(delivery: Delivery, { result, chargeNanos }: Settled): Promise<void> {
  if (delivery.hasLeft) return delivery.abandon();
  if (delivery.isPassing) return delivery.endPassing();
  if (result.kind === 'finished') return delivery.finish(result, chargeNanos);
  const refusal = refusalOfResult(result);
  if (refusal !== null) return delivery.fail(refusal, chargeNanos);
}
