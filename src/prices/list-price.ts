import type { ModelInfo } from '@pydantic/genai-prices';
import type { ChangingPrice, PriceChange, PriceTime } from '../domain/money/price-changes.ts';
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

/** The rates that are charged. */
const charged = ['input_mtok', 'cache_read_mtok', 'cache_write_mtok', 'output_mtok', 'requests_kcount'];

/**
 * Rates of what no request has here: tools, searches, files, sound and pictures as input, and caches that are asked for. A model
 * with any other one is refused, as that would be left out of its charges.
 */
const unused = new Set([
  'cache_write_1h_mtok',
  'web_searches_kcount',
  'storage_searches_kcount',
  'input_audio_mtok',
  'cache_audio_read_mtok',
  'input_image_mtok',
  'cache_image_read_mtok',
  'input_video_mtok',
  'input_document_kpages',
  'input_annotated_document_kpages',
]);

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
  const read = all.map(({ constraint, prices: rates }) => ({
    time: constraint === undefined ? ('always' as const) : timeOf(constraint),
    price: readRates(rates, factor),
  }));
  const refused = read.find(({ price }) => typeof price === 'string')?.price;
  if (typeof refused === 'string') return refused;
  // Of several without a condition, the list takes the last one.
  const first = read.findLastIndex(({ time }) => time === 'always');
  const base = read[Math.max(first, 0)]?.price;
  if (base === undefined || typeof base === 'string') return 'it has no price';
  const priceChanges: PriceChange[] = [];
  for (const { time, price } of read.slice(first + 1)) {
    if (time === null || time === 'always')
      return 'a time from which it has another price is not understood here';
    if (typeof price !== 'string') priceChanges.push({ time, price });
  }
  return {
    price: base,
    ...(priceChanges.length === 0 ? {} : { priceChanges }),
    ...(contextTokens === undefined ? {} : { contextTokens }),
  };
}

function readRates(rates: Rates, factor: Factor): ModelPrice | string {
  if (rates['output_mtok'] === undefined) return 'it has no price of text as output';
  if (rates['input_mtok'] === undefined) return 'it has no price of text as input';
  const kind = Object.keys(rates).find((name) => !charged.includes(name) && !unused.has(name));
  if (kind !== undefined) return `it is billed by '${kind}', too, which is not counted here`;
  if (isTiered(rates['requests_kcount'])) return 'its price of a request depends on the size of the input';
  const starts = new Set(charged.flatMap((name) => startsOf(rates[name])));
  const [start, ...others] = starts;
  if (others.length > 0) return 'it has several prices by the size of the input';
  const line = (isAbove: boolean): Price => {
    const nanos = (name: string, units = 1n): number | null => {
      const rate = rateOf(rates[name], isAbove);
      return rate === null ? null : nanosOf(rate, factor, units);
    };
    const input = nanos('input_mtok') ?? 0;
    return {
      input,
      cachedInput: nanos('cache_read_mtok') ?? input,
      cacheWrite: nanos('cache_write_mtok') ?? input,
      output: nanos('output_mtok') ?? 0,
      request: nanos('requests_kcount', 1_000n) ?? 0,
    };
  };
  return { ...line(false), above: start === undefined ? null : { inputTokens: start, ...line(true) } };
}

function startsOf(rate: number | Tiers | undefined): readonly number[] {
  return isTiered(rate) ? rate.tiers.map(({ start }) => start) : [];
}

function rateOf(rate: number | Tiers | undefined, isAbove: boolean): number | null {
  if (!isTiered(rate)) return rate ?? null;
  return (isAbove ? rate.tiers[0]?.price : undefined) ?? rate.base;
}

function isTiered(rate: number | Tiers | undefined): rate is Tiers {
  return typeof rate === 'object';
}

/** Within what part of a billionth a rate is meant to be a whole one: the rest is a trace of binary fractions. */
const traceOf = 1_000_000n;

/**
 * A rate of the list in nano-USD, times a factor, and divided by how many its unit has; rounded up. The list has decimal numbers:
 * the shortest one that is read as the same number is meant.
 */
function nanosOf(rate: number, { times, by }: Factor, units: bigint): number {
  const [whole = '0', fraction = ''] = plainDecimal(String(rate)).split('.');
  const parts = 10n ** BigInt(Math.max(0, fraction.length - maxDecimals));
  const meant = BigInt(whole + fraction.padEnd(maxDecimals, '0'));
  const beyond = meant % parts;
  const isTrace = beyond * traceOf <= parts || (parts - beyond) * traceOf <= parts;
  const exact = isTrace ? ((meant + parts / 2n) / parts) * parts : meant;
  const divisor = parts * by * units;
  return Number((exact * times + divisor - 1n) / divisor);
}

/** How many digits behind the point an amount of USD has: as many as billionths. */
const maxDecimals = String(nanosPerUsd).length - 1;

/** When a price holds, by the condition that the list has for it; `null` where that can't be read. */
function timeOf(
  condition:
    | { readonly type: 'start_date'; readonly start_date: string }
    | { readonly type: 'time_of_date'; readonly start_time: string; readonly end_time: string },
): PriceTime | null {
  if (condition.type === 'start_date') {
    const fromMs = Date.parse(`${condition.start_date}T00:00:00Z`);
    return Number.isFinite(fromMs) ? { kind: 'from', fromMs } : null;
  }
  const [dailyFromMs, dailyUntilMs] = [timeOfDay(condition.start_time), timeOfDay(condition.end_time)];
  const isRead = Number.isFinite(dailyFromMs) && Number.isFinite(dailyUntilMs);
  return isRead ? { kind: 'daily', dailyFromMs, dailyUntilMs } : null;
}

const dayMs = 86_400_000;

/** Milliseconds from midnight UTC to a time of the day, such as `16:30:00Z`, or one with an offset; `NaN` for any other text. */
function timeOfDay(text: string): number {
  if (!/(?:Z|[+-]\d{2}:\d{2})$/.test(text)) return Number.NaN;
  return (Date.parse(`1970-01-02T${text}`) + dayMs) % dayMs;
}
