import type { ModelPrice } from './pricing.ts';

/**
 * When a price holds: from an instant on, in milliseconds since 1970, or in a part of every day, in milliseconds from midnight
 * UTC.
 */
export type PriceTime =
  | { readonly kind: 'from'; readonly fromMs: number }
  | {
      readonly kind: 'daily';
      readonly dailyFromMs: number;
      /** Before where it begins if midnight is in it. */
      readonly dailyUntilMs: number;
    };

/** A price that holds at some times. */
export interface PriceChange {
  readonly time: PriceTime;
  readonly price: ModelPrice;
}

/** A price, and those that hold at some times in its place: of several that do, the last one. */
export interface ChangingPrice {
  readonly price: ModelPrice;
  /** Absent where it is always the same. */
  readonly priceChanges?: readonly PriceChange[];
}

const dayMs = 86_400_000;

/** The price that holds at a time, in milliseconds since 1970. */
export function priceAt({ price, priceChanges = [] }: ChangingPrice, atMs: number): ModelPrice {
  return priceChanges.findLast(({ time }) => holds(time, atMs))?.price ?? price;
}

/** The same, with the price that holds at a time as its only one. */
export function pricedAt<Priced extends ChangingPrice>(priced: Priced, atMs: number) {
  // Nearly all, for each request: they are not copied.
  if (priced.priceChanges === undefined) return priced;
  const { priceChanges: _, ...always } = priced;
  return { ...always, price: priceAt(priced, atMs) };
}

function holds(time: PriceTime, atMs: number): boolean {
  if (time.kind === 'from') return atMs >= time.fromMs;
  const { dailyFromMs, dailyUntilMs } = time;
  const ofDayMs = ((atMs % dayMs) + dayMs) % dayMs;
  return dailyUntilMs < dailyFromMs
    ? ofDayMs >= dailyFromMs || ofDayMs < dailyUntilMs
    : ofDayMs >= dailyFromMs && ofDayMs < dailyUntilMs;
}
