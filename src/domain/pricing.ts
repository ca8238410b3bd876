import { maxNanos } from '../shared/money.ts';
import type { TextRequest, Usage } from '../protocol/text.ts';

/** One line of a price, in nano-USD: what a million tokens of each kind cost, and a request whatever its tokens. */
export interface Price {
  readonly input: number;
  readonly cachedInput: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly request: number;
}

/** What a model costs. A request with more input than `above.inputTokens` is billed by that line as a whole. */
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

/** What a message costs beside its text, in tokens, at the most: the role and the marks around it. */
const mostTokensPerTurn = 16;

/** Tokens that an upstream may add to a prompt, and bill, without exceeding a hold that is to be a bound. */
const hiddenPromptTokens = 4_096;

/** How many bytes a token has on average; fewer only in rare texts. */
const bytesPerToken = 4;

/** The counts that are paid for. */
export type PaidTokens = Pick<
  Usage,
  'inputTokens' | 'cachedInputTokens' | 'cacheWriteTokens' | 'outputTokens'
>;

/** What is paid for where no tokens are counted. */
export const noTokens: PaidTokens = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
};

/** The line of a price by which a request with so much input is billed. */
export function priceFor({ above, ...base }: ModelPrice, inputTokens: number): Price {
  if (above === null || inputTokens <= above.inputTokens) return base;
  const { inputTokens: _threshold, ...line } = above;
  return line;
}

/** What tokens cost in nano-USD: exact, and rounded up once. Cached and written input are parts of the input. */
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

/** How an amount is set aside for a request that has not run yet. */
export interface HoldTerms {
  /** Output tokens to expect of a request that names no cap of its own. */
  readonly holdTokens: number;
  /** Whether the amount is a bound of the cost, rather than what it will likely be. */
  readonly strict: boolean;
}

/**
 * What to set aside for a request, in nano-USD: its input by the size of its text and as if all of it were of the
 * dearest kind, and its output up to its cap. As a bound, every byte of input counts as a token, and so does a hidden prompt:
 * it holds for every upstream that honours the cap and adds no more than that.
 */
export function holdFor(
  { turns, maxOutputTokens }: Pick<TextRequest, 'turns' | 'maxOutputTokens'>,
  price: ModelPrice,
  { holdTokens, strict }: HoldTerms,
): number {
  const inputTokens = strict
    ? mostTokensOf(turns) + hiddenPromptTokens
    : Math.ceil(bytesOf(turns) / bytesPerToken) + marksOf(turns);
  const tokens = { ...noTokens, inputTokens, outputTokens: maxOutputTokens ?? holdTokens };
  const lines = [priceFor(price, 0), priceFor(price, inputTokens)];
  return Math.max(...lines.map((line) => costOf(tokens, { ...line, input: dearestInput(line) })));
}

/** The most tokens that some turns can have: no token has less than a byte. */
export function mostTokensOf(turns: TextRequest['turns']): number {
  return bytesOf(turns) + marksOf(turns);
}

function dearestInput({ input, cachedInput, cacheWrite }: Price): number {
  return Math.max(input, cachedInput, cacheWrite);
}

function bytesOf(turns: TextRequest['turns']): number {
  return turns.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
}

/** The tokens of the marks around turns, and around the answer that follows them. */
function marksOf(turns: TextRequest['turns']): number {
  return mostTokensPerTurn * (turns.length + 1);
}
