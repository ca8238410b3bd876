import type { ModelInfo } from '@pydantic/genai-prices';
import type { ChangingPrice, PriceTime } from '../domain/money/price-changes.ts';
import type { ModelPrice, Price } from '../domain/money/pricing.ts';
import { nanosPerUsd, plainDecimal } from '../shared/money.ts';

/** What a price is multiplied by, as whole numbers: 1.2 is 12 ÷ 10. */
export interface Factor {
  readonly times: bigint;
  readonly by: bigint;
}

export const once: Factor = { times: 1n, by: 1n };

/** The largest factor: a product of it and any price of the list is an exact amount. */
const maxFactor = 1_000n;

/** Reads a factor such as `1.2`, with at most nine digits behind its point; `null` where it is not above 0, or too large. */
export function readFactor(text: string): Factor | null {
  const [, whole, fraction = ''] = /^(\d{1,4})(?:\.(\d{1,9}))?$/.exec(text) ?? [];
  if (whole === undefined) return null;
  const times = BigInt(whole + fraction);
  const by = 10n ** BigInt(fraction.length);
  return times === 0n || times > maxFactor * by ? null : { times, by };
}

/** The prices of the list of one time. */
type Rates = Readonly<Record<string, number | Tiers | undefined>>;

interface Tiers {
  readonly base: number;
  readonly tiers: readonly { readonly start: number; readonly price: number }[];
}

/** A kind of tokens, or of uses, that answers may be billed by and that is not counted here: its cost would be left out. */
const uncounted = ['output_reasoning_mtok', 'output_citation_mtok', 'input_text_messages_kcount'];

/** What the list has of a model. */
export interface ListedTerms extends ChangingPrice {
  /** The most tokens that its input and output have together; absent where the list does not say. */
  readonly contextTokens?: number;
}

/** What the list has of a model, its prices times a factor; or why it has none that can be charged. */
export function listPrice(
  { prices, context_window: contextTokens }: Pick<ModelInfo, 'prices' | 'context_window'>,
  factor: Factor,
): ListedTerms | string {
  const all = Array.isArray(prices) ? prices : [{ prices }];
  const read = all.map(({ constraint, prices: rates }) => ({ constraint, price: readRates(rates, factor) }));
  const refused = read.find(({ price }) => typeof price === 'string')?.price;
  if (typeof refused === 'string') return refused;
  // Of several without a condition, the list takes the last one.
  const first = read.findLastIndex(({ constraint }) => constraint === undefined);
  const base = read[Math.max(first, 0)]?.price;
  if (base === undefined || typeof base === 'string') return 'it has no price';
  const priceChanges = read
    .slice(first + 1)
    .flatMap(({ constraint, price }) =>
      constraint === undefined || typeof price === 'string' ? [] : [{ time: timeOf(constraint), price }],
    );
  return {
    price: base,
    ...(priceChanges.length === 0 ? {} : { priceChanges }),
    ...(contextTokens === undefined ? {} : { contextTokens }),
  };
}

function readRates(rates: Rates, factor: Factor): ModelPrice | string {
  const { input_mtok: input, output_mtok: output } = rates;
  if (output === undefined) return 'it has no price of text as output';
  if (input === undefined) return 'it has no price of text as input';
  const kind = uncounted.find((name) => rates[name] !== undefined);
  if (kind !== undefined) return `it is billed by '${kind}', too, which is not counted here`;
  const starts = new Set(
    Object.values(rates).flatMap((rate) => (isTiered(rate) ? rate.tiers.map(({ start }) => start) : [])),
  );
  const [start, ...others] = starts;
  if (others.length > 0) return 'it has several prices by the size of the input';
  const line = (isAbove: boolean): Price => {
    const rateOf = (name: string): number | null => {
      const rate = rates[name];
      if (rate === undefined) return null;
      const [tier] = isTiered(rate) ? rate.tiers : [];
      return isTiered(rate) ? (isAbove && tier !== undefined ? tier.price : rate.base) : rate;
    };
    const nanos = (name: string, kinds = 1n): number | null => {
      const rate = rateOf(name);
      return rate === null ? null : nanosOf(rate, factor, kinds);
    };
    const inputNanos = nanos('input_mtok') ?? 0;
    return {
      input: inputNanos,
      cachedInput: nanos('cache_read_mtok') ?? inputNanos,
      cacheWrite: nanos('cache_write_mtok') ?? inputNanos,
      output: nanos('output_mtok') ?? 0,
      request: nanos('requests_kcount', 1_000n) ?? 0,
    };
  };
  return { ...line(false), above: start === undefined ? null : { inputTokens: start, ...line(true) } };
}

function isTiered(rate: number | Tiers | undefined): rate is Tiers {
  return typeof rate === 'object';
}

/**
 * A rate of the list in nano-USD, times a factor, and divided by how many its unit has; rounded up. The list has decimal numbers:
 * the shortest one that is read as the same number is meant, and behind the ninth digit there are traces of binary fractions.
 */
function nanosOf(rate: number, { times, by }: Factor, units: bigint): number {
  const [whole = '0', fraction = ''] = plainDecimal(String(rate)).split('.');
  const meant = fraction.length > maxDecimals ? rate.toFixed(maxDecimals) : `${whole}.${fraction}`;
  const nanos = BigInt(meant.replace('.', '').padEnd(meant.indexOf('.') + maxDecimals, '0'));
  const divisor = by * units;
  return Number((nanos * times + divisor - 1n) / divisor);
}

/** How many digits behind the point an amount of USD has: as many as billionths. */
const maxDecimals = String(nanosPerUsd).length - 1;

/** When a price holds, by the condition that the list has for it. */
function timeOf(
  condition:
    | { readonly type: 'start_date'; readonly start_date: string }
    | { readonly type: 'time_of_date'; readonly start_time: string; readonly end_time: string },
): PriceTime {
  return condition.type === 'start_date'
    ? { kind: 'from', fromMs: Date.parse(`${condition.start_date}T00:00:00Z`) }
    : {
        kind: 'daily',
        dailyFromMs: timeOfDay(condition.start_time),
        dailyUntilMs: timeOfDay(condition.end_time),
      };
}

const dayMs = 86_400_000;

/** Milliseconds from midnight UTC to a time of the day, such as `16:30:00Z`, or one with an offset. */
function timeOfDay(text: string): number {
  return (Date.parse(`1970-01-02T${text}`) + dayMs) % dayMs;
}
