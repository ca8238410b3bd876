import type { Interruption } from '../domain/interruption.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { Exchange } from './exchange.ts';

/** How long an answer is read on for its usage after its client left, in milliseconds. */
const maxReadOnMs = 30_000;

/**
 * Stops the request of a client that left, which spares what the upstream has not written yet. Where the route says
 * `drain`, an answer that has begun is read on for its usage instead: an upstream that bills a cut-off call as a whole
 * one is then charged as it bills. The returned function ends the wait.
 */
export function watchDeparture(exchange: Exchange, clock: Clock): () => void {
  const { client, notes, interruption } = exchange;
  const stop = (): void => interruption.abort('client_closed' satisfies Interruption);
  let cancel: (() => void) | null = null;
  client.onGone(() => {
    notes.clientLeft = true;
    const begun = notes.stream && notes.text.chars > 0;
    if (notes.route?.onDisconnect === 'drain' && begun) cancel = clock.schedule(maxReadOnMs, stop);
    else stop();
  });
  return () => cancel?.();
}
