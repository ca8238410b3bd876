import type { Clock } from '../../domain/ports/clock.ts';
import type { Exchange } from '../exchange.ts';
import { disconnectRuleOf } from '../money/charge.ts';

/** How long an answer is still read for its usage after its last client disconnected, in milliseconds. */
const maxReadOnMs = 30_000;

/**
 * Stops the request when its client disconnects, which saves the cost of the unwritten rest of the answer. One that runs under
 * a claim goes on for those who come back: its run says when it is stopped. The returned function cancels the wait.
 */
export function watchDisconnect(
  exchange: Pick<Exchange, 'delivery' | 'interruption' | 'stage' | 'claim'>,
  clock: Clock,
): () => void {
  let cancel: (() => void) | null = null;
  exchange.delivery.onLeft(() => {
    if (exchange.claim?.phase === 'running') return;
    cancel = stopWithoutClients(exchange, clock);
  });
  return () => cancel?.();
}

/**
 * Stops a request without clients. On a `drain` route, an answer that has begun is read on for its usage instead: some
 * upstreams bill an aborted call in full, and the charge then matches their bill. The returned function cancels the wait.
 */
export function stopWithoutClients(
  exchange: Pick<Exchange, 'interruption' | 'stage'>,
  clock: Clock,
): () => void {
  const stop = (): void => exchange.interruption.abort('client_closed');
  if (isReadOn(exchange)) return clock.schedule(maxReadOnMs, stop);
  stop();
  return () => {};
}

function isReadOn({ stage }: Pick<Exchange, 'stage'>): boolean {
  if (stage.stage !== 'recorded' || stage.work.kind !== 'text') return false;
  const { request, received, routes } = stage.work;
  const hasBegun = request.stream && received.text.chars > 0;
  return hasBegun && disconnectRuleOf(routes, stage.attempts.upstream) === 'drain';
}
