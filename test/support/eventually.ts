import { setImmediate, setTimeout } from 'node:timers/promises';

/** How long a condition may take to come true, in milliseconds: a bound against hanging, not a measure. */
const patienceMs = 30_000;

/** How many turns of the event loop follow one another; later ones leave the processor to what is waited for. */
const quickTurns = 100;

/** The pause between later turns, in milliseconds. */
const pauseMs = 2;

/** Waits until a condition holds, and looks again and again; throws when the time is over. */
export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  withinMs = patienceMs,
): Promise<void> {
  const startedMs = performance.now();
  for (let turn = 0; !(await condition()); turn++) {
    if (performance.now() - startedMs > withinMs) throw new Error(`never became true: ${what}`);
    await (turn < quickTurns ? setImmediate() : setTimeout(pauseMs));
  }
}
