import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../src/domain/money/consumption.ts';
import { chargeBasis, isPaid, isPassagePaid } from '../../src/domain/money/settlement.ts';

/** Whether an outcome is charged by the table once text was streamed, and before; `null` where other facts decide. */
const outcomes: Readonly<Record<Outcome, readonly [sent: boolean | null, unsent: boolean | null]>> = {
  completed: [true, true],
  incomplete: [true, true],
  refused: [false, false],
  upstream_failed: [true, false],
  upstream_truncated: [true, false],
  first_byte_timeout: [true, false],
  idle_timeout: [true, false],
  total_timeout: [true, false],
  client_closed: [null, null],
  cancelled: [null, null],
  drained: [true, false],
  crashed: [true, false],
  lost: [false, false],
  server_error: [false, false],
};

describe('a request', () => {
  test.each(Object.entries(outcomes))(
    'that ended as %s is charged, or not, by the table: %j',
    (outcome, expected) => {
      expect([isPaid(outcome as Outcome, true), isPaid(outcome as Outcome, false)]).toEqual(expected);
    },
  );

  test('whose client left is charged by the rule of its upstream, and by the upstream’s count if there is one', () => {
    expect(chargeBasis('client_closed', 'estimate', 'none', true)).toBe('nothing');
    expect(chargeBasis('client_closed', 'estimate', 'awaited', false)).toBe('counted');
    expect(chargeBasis('cancelled', 'drain', 'unsent', true)).toBe('upstream');
    expect(chargeBasis('cancelled', 'free', 'sent', true)).toBe('nothing');
  });

  test.each<[Outcome, number | null, boolean]>([
    ['completed', 200, true],
    ['completed', 399, true],
    ['completed', 400, false],
    ['completed', null, false],
    ['total_timeout', 200, true],
    ['client_closed', 200, true],
    ['idle_timeout', 200, false],
    ['server_error', 200, false],
  ])('that is passed on, ended as %s with status %s, is charged: %s', (outcome, status, expected) => {
    expect(isPassagePaid(outcome, status)).toBe(expected);
  });
});
