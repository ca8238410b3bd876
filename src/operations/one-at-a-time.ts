import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';

/** When it makes sense to ask again for work that runs already, in milliseconds. */
const retryMs = 10_000;

/** Returns a function that begins some work, and returns how to end it, or a refusal while it runs. */
export function oneAtATime(what: string): () => (() => void) | Refusal {
  let running = false;
  return () => {
    if (running)
      return refuse('concurrency_limit_exceeded', `${what} is running already. Wait for its end.`, {
        retryAfterMs: retryMs,
      });
    running = true;
    return () => {
      running = false;
    };
  };
}
