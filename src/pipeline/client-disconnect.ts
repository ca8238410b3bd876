import type { Clock } from '../domain/ports/clock.ts';
import { disconnectRuleOf } from './charge.ts';
import type { Exchange } from './exchange.ts';

/** How long an answer is read on for its usage after its last client left, in milliseconds. */
const maxReadOnMs = 30_000;

/**
 * Stops the request once its last client left, which spares what the upstream has not written yet. Where the route says
 * `drain`, an answer that has begun is read on for its usage instead: an upstream that bills a cut-off call as a whole
 * one is then charged as it bills. The returned function ends the wait.
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
