import { maxNanos } from '../../shared/money.ts';
import type { Usage } from '../../protocol/text.ts';

/** One line of a price, in nano-USD: per million tokens of each kind, and per request. */
export interface Price {
  readonly input: number;
  readonly cachedInput: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly request: number;
}

/** A model's price. A request with more input than `above.inputTokens` is billed entirely by that line. */
export interface ModelPrice extends Price {
  readonly above: (Price & { readonly inputTokens: number }) | null;
}

/** The price of a model that costs nothing. */
export const free: ModelPrice = {
  input: 0,
  cachedInput: 0,
  cacheWrite: 0,
  output: 0,
  request: 0,
  above: null,
};

const perTokens = 1_000_000n;

/** The token counts that have a price. */
export type PaidTokens = Pick<
  Usage,
  'inputTokens' | 'cachedInputTokens' | 'cacheWriteTokens' | 'outputTokens'
>;

/** For requests whose tokens are not counted. */
export const noTokens: PaidTokens = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
};

/** The line of a price that applies to a request with `inputTokens`. */
export function priceFor(price: ModelPrice, inputTokens: number): Price {
  const { above } = price;
  const line = above === null || inputTokens <= above.inputTokens ? price : above;
  const { input, cachedInput, cacheWrite, output, request } = line;
  return { input, cachedInput, cacheWrite, output, request };
}

/** The cost of tokens in nano-USD, exact and rounded up once. Cached and written input are parts of the input. */
export function costOf(tokens: PaidTokens, price: Price): number {
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens } = tokens;
  const sum =
    BigInt(inputTokens - cachedInputTokens - cacheWriteTokens) * BigInt(price.input) +
    BigInt(cachedInputTokens) * BigInt(price.cachedInput) +
    BigInt(cacheWriteTokens) * BigInt(price.cacheWrite) +
    BigInt(outputTokens) * BigInt(price.output);
  const cost = (sum + perTokens - 1n) / perTokens + BigInt(price.request);
  return cost > BigInt(maxNanos) ? maxNanos : Number(cost);
}

/** The cost of tokens if all of the input is of the dearest kind. */
export function costAtMost(tokens: PaidTokens, line: Price): number {
  return costOf(tokens, { ...line, input: dearestInput(line) });
}

/** The price of the dearest kind of input. */
function dearestInput({ input, cachedInput, cacheWrite }: Price): number {
  return Math.max(input, cachedInput, cacheWrite);
}

/**
 * The most output tokens that `nanos` pay for beside `inputTokens`, by every line of the price that may apply: less than 0
 * if they do not pay for the input, `Infinity` if output costs nothing.
 */
export function outputWithin(nanos: number, inputTokens: number, price: ModelPrice): number {
  const usual = outputWithinLine(nanos, inputTokens, priceFor(price, 0));
  if (price.above === null) return usual;
  return Math.min(usual, outputWithinLine(nanos, inputTokens, priceFor(price, inputTokens)));
}

function outputWithinLine(nanos: number, inputTokens: number, line: Price): number {
  const left =
    (BigInt(nanos) - BigInt(line.request)) * perTokens - BigInt(inputTokens) * BigInt(dearestInput(line));
  if (left < 0n) return -1;
  return line.output === 0 ? Infinity : Number(left / BigInt(line.output));
}
