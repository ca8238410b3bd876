import type { Clock } from '../domain/ports/clock.ts';

/**
 * Does some work after `firstMs`, and again `delayMs` after each end of it, until the signal is raised. `work` must not
 * reject. Returns a function that resolves when the last work is done.
 */
export function repeat(
  work: () => Promise<void>,
  { firstMs, delayMs }: { readonly firstMs: number; readonly delayMs: number },
  clock: Clock,
  signal: AbortSignal,
): () => Promise<void> {
  let working = Promise.resolve();
  let cancel = clock.schedule(firstMs, again);
  signal.addEventListener('abort', () => cancel(), { once: true });
  function again(): void {
    working = work().then(() => {
      if (!signal.aborted) cancel = clock.schedule(delayMs, again);
    });
  }
  return () => working;
}
