import { expect, test } from 'vitest';
import { priceAt, pricedAt } from '../../src/domain/money/price-changes.ts';
import { free } from '../../src/domain/money/pricing.ts';
import { ShadowBook } from '../../src/domain/shadows/shadow-book.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const atNight = { ...free, input: 1 };
const byDay = { ...free, input: 2 };
const later = { ...free, input: 3 };
const priced = {
  price: atNight,
  priceChanges: [
    { time: { kind: 'daily' as const, dailyFromMs: 28_800_000, dailyUntilMs: 57_600_000 }, price: byDay },
    { time: { kind: 'from' as const, fromMs: Date.UTC(2030, 0, 2) }, price: later },
  ],
};

test('of the prices that hold at a time, the last one is charged', () => {
  expect(priceAt(priced, Date.UTC(2030, 0, 1, 7, 59, 59, 999))).toBe(atNight);
  expect(priceAt(priced, Date.UTC(2030, 0, 1, 8))).toBe(byDay);
  expect(priceAt(priced, Date.UTC(2030, 0, 1, 16))).toBe(atNight);
  expect(priceAt(priced, Date.UTC(2030, 0, 2, 8))).toBe(later);
  // Before 1970, too.
  expect(priceAt(priced, Date.UTC(1960, 0, 1, 8))).toBe(byDay);
});

test('what was priced at a time has that price at every other one', () => {
  const once = pricedAt({ id: 'small', ...priced }, Date.UTC(2030, 0, 1, 8));
  expect(once).toEqual({ id: 'small', price: byDay });
  expect(priceAt(once, Date.UTC(2030, 0, 2))).toBe(byDay);
});

test('operators see what a shadow costs now', () => {
  const clock = createFakeClock(Date.UTC(2030, 0, 1, 15, 59, 59));
  const book = new ShadowBook(clock, { skipped() {}, ended() {}, compared() {} });
  const route = { upstream: 'other', model: 'copy' };
  book.configure([{ model: 'small', route, share: 1, budgetNanos: null, maxInFlight: 1, ...priced }]);
  const seen = () => book.views().map(({ terms }) => terms.price);
  expect(seen()).toEqual([byDay]);
  clock.advance(1_000);
  expect(seen()).toEqual([atNight]);
});
