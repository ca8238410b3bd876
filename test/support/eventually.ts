import { setImmediate } from 'node:timers/promises';

/** How long a condition may take to come true, in milliseconds: a bound against hanging, not a measure. */
const patienceMs = 30_000;

/** Waits until a condition holds, one turn of the event loop at a time; throws when the time is over. */
export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  withinMs = patienceMs,
): Promise<void> {
  const startedMs = performance.now();
  while (!(await condition())) {
    if (performance.now() - startedMs > withinMs) throw new Error(`never became true: ${what}`);
    await setImmediate();
  }
}
