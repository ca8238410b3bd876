import { setImmediate } from 'node:timers/promises';

/** How long a condition may take to come true, in milliseconds: a bound against hanging, not a measure. */
const patienceMs = 30_000;

/** Waits until a condition holds, by letting the event loop turn; throws when it never does. */
export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  withinMs = patienceMs,
): Promise<void> {
  const startedMs = performance.now();
  while (!(await condition())) {
    if (performance.now() - startedMs > withinMs) throw new Error(`never came true: ${what}`);
    await setImmediate();
  }
}
