import type { Clock } from '../../domain/ports/clock.ts';

/** Silence on a stream before a comment is sent, in milliseconds: proxies close idle connections after 30 or 60 s. */
const maxSilenceMs = 15_000;

/** Calls back after every 15 s without a sent byte; `lastSentMs` is on the monotonic clock. Returns a stop function. */
export function watchSilence(clock: Clock, lastSentMs: () => number, onSilence: () => void): () => void {
  const beat = (): void => {
    const silentMs = clock.monotonicMs() - lastSentMs();
    const isDue = silentMs >= maxSilenceMs;
    if (isDue) onSilence();
    cancel = clock.schedule(isDue ? maxSilenceMs : maxSilenceMs - silentMs, beat);
  };
  let cancel = clock.schedule(maxSilenceMs, beat);
  return () => cancel();
}
