import { maxNanos } from '../shared/money.ts';
import type { TextRequest, Usage } from '../protocol/text.ts';

/** What a million tokens of each kind cost, in nano-USD. */
export interface Price {
  readonly input: number;
  readonly cachedInput: number;
  readonly output: number;
}

/** The price of a model that costs nothing. */
export const free: Price = { input: 0, cachedInput: 0, output: 0 };

const perTokens = 1_000_000n;

/** What a message costs beside its text, in tokens, at the most: the role and the marks around it. */
const tokensPerTurn = 16;

/** How many bytes a token has on average; fewer only in rare texts. */
const bytesPerToken = 4;

/** The counts that are paid for. */
export type PaidTokens = Pick<Usage, 'inputTokens' | 'cachedInputTokens' | 'outputTokens'>;

/** What tokens cost in nano-USD: exact, and rounded up once. Cached input is a part of the input. */
export function costOf(tokens: PaidTokens, price: Price): number {
  const { inputTokens, cachedInputTokens, outputTokens } = tokens;
  const sum =
    BigInt(inputTokens - cachedInputTokens) * BigInt(price.input) +
    BigInt(cachedInputTokens) * BigInt(price.cachedInput) +
    BigInt(outputTokens) * BigInt(price.output);
  const cost = (sum + perTokens - 1n) / perTokens;
  return cost > BigInt(maxNanos) ? maxNanos : Number(cost);
}

/** How an amount is set aside for a request that has not run yet. */
export interface HoldTerms {
  /** Output tokens to expect of a request that names no cap of its own. */
  readonly holdTokens: number;
  /** Whether the amount is a bound that the cost can't exceed, rather than what it will likely be. */
  readonly strict: boolean;
}

/**
 * What to set aside for a request, in nano-USD: its input by the size of its text, and its output up to its cap. As a
 * bound, every byte of input counts as a token, since no token has less than one.
 */
export function holdFor(
  { turns, maxOutputTokens }: Pick<TextRequest, 'turns' | 'maxOutputTokens'>,
  price: Price,
  { holdTokens, strict }: HoldTerms,
): number {
  const textBytes = turns.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
  const textTokens = strict ? textBytes : Math.ceil(textBytes / bytesPerToken);
  return costOf(
    {
      inputTokens: textTokens + tokensPerTurn * (turns.length + 1),
      cachedInputTokens: 0,
      outputTokens: maxOutputTokens ?? holdTokens,
    },
    price.cachedInput > price.input ? { ...price, input: price.cachedInput } : price,
  );
}
