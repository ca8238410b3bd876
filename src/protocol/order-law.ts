import type { TextEvent } from './text.ts';

/**
 * Wraps the order law of `TextEvent` as a checker: hand it every event and it throws at the first one
 * that comes after the ending, or that is an empty delta. `ended()` tells whether the ending has come.
 */
export function createOrderLaw(): { check(event: TextEvent): void; ended(): boolean } {
  let ending: TextEvent['type'] | null = null;
  return {
    check(event) {
      if (ending !== null) throw new Error(`order law broken: ${event.type} after ${ending}`);
      if (event.type === 'delta' && event.text === '')
        throw new Error('order law broken: a delta without text');
      if (event.type !== 'delta') ending = event.type;
    },
    ended: () => ending !== null,
  };
}
