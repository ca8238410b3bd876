import { describe, expect, test } from 'vitest';
import { createOrderLaw } from '../support/order-law.ts';
import { refuse } from '../../src/shared/errors.ts';
import type { TextEvent } from '../support/order-law.ts';

const delta: TextEvent = { type: 'delta', text: 'x' };
const finish: TextEvent = { type: 'finish', reason: 'stop', rawReason: 'stop', usage: null };
const failure: TextEvent = { type: 'failure', refusal: refuse('upstream_error', 'x'), usage: null };

describe('the order law', () => {
  test.each<[string, TextEvent[]]>([
    ['a finish alone', [finish]],
    ['a failure alone', [failure]],
    ['deltas, then a finish', [delta, delta, finish]],
    ['deltas, then a failure', [delta, failure]],
  ])('allows %s', (_name, events) => {
    const law = createOrderLaw();
    for (const event of events) {
      expect(law.ended()).toBe(false);
      law.check(event);
    }
    expect(law.ended()).toBe(true);
  });

  test.each<[string, TextEvent[], RegExp]>([
    ['a delta after the finish', [finish, delta], /delta after finish/],
    ['two finishes', [finish, finish], /finish after finish/],
    ['a failure after the finish', [finish, failure], /failure after finish/],
    ['a finish after the failure', [failure, finish], /finish after failure/],
    ['an empty delta', [{ type: 'delta', text: '' }], /without text/],
  ])('forbids %s', (_name, events, message) => {
    const law = createOrderLaw();
    expect(() => events.forEach((event) => law.check(event))).toThrow(message);
  });
});
