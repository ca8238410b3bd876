import type { Clock } from '../domain/ports/clock.ts';
import { disconnectRuleOf } from './money/charge.ts';
import type { Exchange } from './exchange.ts';

/** How long an answer is still read for its usage after its last client disconnected, in milliseconds. */
const maxReadOnMs = 30_000;

/**
 * Stops the request when its last client disconnects, which saves the cost of the unwritten rest of the answer. On a
 * `drain` route, an answer that has begun is read on for its usage instead: some upstreams bill an aborted call in
 * full, and the charge then matches their bill. The returned function cancels the wait.
 */
export function watchDisconnect(
  exchange: Pick<Exchange, 'deliveries' | 'interruption' | 'stage'>,
  clock: Clock,
): () => void {
  let cancel: (() => void) | null = null;
  const stop = (): void => exchange.interruption.abort('client_closed');
  for (const delivery of exchange.deliveries)
    delivery.onLeft(() => {
      if (exchange.deliveries.some(({ hasLeft }) => !hasLeft)) return;
      if (isReadOn(exchange)) cancel = clock.schedule(maxReadOnMs, stop);
      else stop();
    });
  return () => cancel?.();
}

function isReadOn({ stage }: Pick<Exchange, 'stage'>): boolean {
  if (stage.stage !== 'recorded' || stage.work.kind !== 'text') return false;
  const { request, received, routes } = stage.work;
  const hasBegun = request.stream && received.text.chars > 0;
  return hasBegun && disconnectRuleOf(routes, stage.attempts.upstream) === 'drain';
}
