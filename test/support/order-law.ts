import type { Usage } from '../../src/protocol/text.ts';
import type { AnswerPart, Failure, FinishReason } from '../../src/protocol/text.ts';
import { refusalOf } from '../../src/domain/upstreams/failure.ts';
import type { Refusal } from '../../src/shared/errors.ts';

/** The parts of an answer taken to pieces, for tests that look at one thing after the other. */
export type TextEvent =
  | { readonly type: 'delta'; readonly text: string }
  | {
      readonly type: 'finish';
      readonly reason: FinishReason;
      readonly rawReason: string;
      readonly usage: Usage | null;
    }
  | { readonly type: 'failure'; readonly refusal: Refusal; readonly usage: Usage | null };

export function eventsOf({ deltas, ending }: AnswerPart): TextEvent[] {
  const events: TextEvent[] = deltas.map((text) => ({ type: 'delta', text }));
  if (ending === null) return events;
  if (ending.kind === 'failed') {
    const { failure, usage }: { failure: Failure; usage: Usage | null } = ending;
    return [...events, { type: 'failure', refusal: refusalOf(failure), usage }];
  }
  const { reason, rawReason, usage } = ending;
  return [...events, { type: 'finish', reason, rawReason, usage }];
}

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
