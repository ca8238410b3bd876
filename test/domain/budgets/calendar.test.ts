import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { budgetPeriods, periodAt } from '../../../src/domain/budgets/calendar.ts';
import type { BudgetPeriod } from '../../../src/domain/budgets/calendar.ts';
import { propertyRun } from '../../support/property-run.ts';
import { referencePeriod, zones } from '../../support/reference-calendar.ts';

/** A period in ISO 8601, with its length in hours. */
function shown(at: string, period: BudgetPeriod, timeZone: string): readonly [string, string, number] {
  const { startMs, endMs } = periodAt(Date.parse(at), period, timeZone);
  return [new Date(startMs).toISOString(), new Date(endMs).toISOString(), (endMs - startMs) / 3_600_000];
}

describe('the period of a budget', () => {
  test.each<[what: string, at: string, BudgetPeriod, zone: string, ...ReturnType<typeof shown>]>([
    [
      'has 23 hours on the day on which clocks go forward',
      '2026-03-29T12:00:00Z',
      'day',
      'Europe/Berlin',
      '2026-03-28T23:00:00.000Z',
      '2026-03-29T22:00:00.000Z',
      23,
    ],
    [
      'has 25 hours on the day on which clocks go back',
      '2026-10-25T12:00:00Z',
      'day',
      'Europe/Berlin',
      '2026-10-24T22:00:00.000Z',
      '2026-10-25T23:00:00.000Z',
      25,
    ],
    [
      'begins at one where clocks go forward at midnight',
      '2018-11-04T12:00:00Z',
      'day',
      'America/Sao_Paulo',
      '2018-11-04T03:00:00.000Z',
      '2018-11-05T02:00:00.000Z',
      23,
    ],
    [
      'begins on Monday',
      '2026-11-22T23:30:00Z',
      'week',
      'UTC',
      '2026-11-16T00:00:00.000Z',
      '2026-11-23T00:00:00.000Z',
      168,
    ],
    [
      'has 29 days in February of a leap year',
      '2028-02-29T23:59:59.999Z',
      'month',
      'UTC',
      '2028-02-01T00:00:00.000Z',
      '2028-03-01T00:00:00.000Z',
      696,
    ],
    [
      'of a month ends in the next year',
      '2026-12-31T22:59:59Z',
      'month',
      'Europe/Berlin',
      '2026-11-30T23:00:00.000Z',
      '2026-12-31T23:00:00.000Z',
      744,
    ],
    [
      'passes over a day that a zone has left out',
      '2011-12-30T10:30:00Z',
      'day',
      'Pacific/Apia',
      '2011-12-30T10:00:00.000Z',
      '2011-12-31T10:00:00.000Z',
      24,
    ],
    [
      'has begun when clocks go back from within it to the day before',
      '2010-03-04T15:00:00Z',
      'day',
      'Antarctica/Casey',
      '2010-03-04T13:00:00.000Z',
      '2010-03-05T16:00:00.000Z',
      27,
    ],
  ])('%s', (_what, at, period, zone, ...expected) => {
    expect(shown(at, period, zone)).toEqual(expected);
  });

  test('is that of the calendar in every zone, and the next one begins where it ends', () => {
    const moment = fc.integer({ min: Date.UTC(1990, 0, 1), max: Date.UTC(2040, 0, 1) });
    fc.assert(
      fc.property(
        moment,
        fc.constantFrom(...zones),
        fc.constantFrom(...budgetPeriods),
        (atMs, zone, period) => {
          const found = periodAt(atMs, period, zone);
          expect(found).toEqual(referencePeriod(atMs, period, zone));
          for (const edgeMs of [found.startMs, found.endMs - 1])
            expect(periodAt(edgeMs, period, zone)).toEqual(found);
          expect(periodAt(found.endMs, period, zone).startMs).toBe(found.endMs);
          expect(periodAt(found.startMs - 1, period, zone).endMs).toBe(found.startMs);
        },
      ),
      propertyRun(300),
    );
  });
});
