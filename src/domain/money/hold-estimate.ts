import type { TextRequest, TextTurn } from '../../protocol/text.ts';
import { costAtMost, priceFor } from './pricing.ts';
import type { ModelPrice } from './pricing.ts';

/** The most tokens that a message can have beside its text: the role and the delimiters around it. */
const mostTokensPerTurn = 16;

/** Tokens that a strict hold adds for a prompt that the upstream may insert and bill, where nothing is known of it. */
export const unknownHiddenTokens = 4_096;

/** The average bytes of a token; only rare texts have fewer. */
const bytesPerToken = 4;

/** How a hold is estimated before the request runs. */
interface HoldTerms {
  /** Output tokens to expect of a request without an output cap. */
  readonly holdTokens: number;
  /** Whether the hold is an upper bound of the cost rather than an estimate. */
  readonly strict: boolean;
  /** What a strict hold adds for a prompt that the upstream may insert; absent where nothing is known of it. */
  readonly hiddenTokens?: number;
}

/**
 * The hold for a request, in nano-USD: its input by the size of its text, at the price of the dearest input kind, and
 * its output up to its cap. A strict hold counts every byte of input as a token and adds `hiddenTokens`: it
 * covers the cost at every upstream that honours the cap and adds no longer prompt.
 */
export function holdFor(
  { turns, maxOutputTokens }: Pick<TextRequest, 'turns' | 'maxOutputTokens'>,
  price: ModelPrice,
  { holdTokens, strict, hiddenTokens }: HoldTerms,
): number {
  const inputTokens = strict ? mostInputTokens(turns, hiddenTokens) : usualInputTokens(turns);
  const outputTokens = maxOutputTokens ?? holdTokens;
  const tokens = { inputTokens, cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens };
  const usual = costAtMost(tokens, priceFor(price, 0));
  return price.above === null ? usual : Math.max(usual, costAtMost(tokens, priceFor(price, inputTokens)));
}

/** The input tokens to expect of these turns, by the size of their text. */
export function usualInputTokens(turns: TextRequest['turns']): number {
  return usualTokensOf(bytesOf(turns), turns.length);
}

/** The tokens to expect of a text of so many bytes in so many turns. */
export function usualTokensOf(bytes: number, turns: number): number {
  return Math.ceil(bytes / bytesPerToken) + mostMarkTokens(turns);
}

/** The most input tokens that an upstream bills for these turns if it adds no longer prompt than `hiddenTokens`. */
export function mostInputTokens(
  turns: TextRequest['turns'],
  hiddenTokens: number = unknownHiddenTokens,
): number {
  return mostTokensOf(turns) + hiddenTokens;
}

/** The most tokens that these turns can have: a token has at least one byte. */
export function mostTokensOf(turns: TextRequest['turns']): number {
  return bytesOf(turns) + mostMarkTokens(turns.length);
}

function bytesOf(turns: TextRequest['turns']): number {
  let bytes = 0;
  for (const { text } of turns) bytes += Buffer.byteLength(text);
  return bytes;
}

/** The most tokens of the delimiters around so many turns, and around the answer that follows them. */
export function mostMarkTokens(turns: number): number {
  return mostTokensPerTurn * (turns + 1);
}

/** Tokens that our own count adds for each turn: its role and the delimiters around it. */
const usualTokensPerTurn = 4;

/** The text of a request as it is counted, without what `tokensOfTurns` adds. */
export function questionOf(turns: readonly TextTurn[]): string {
  return turns.map((turn) => turn.text).join('\n');
}

/** The tokens around the turns of a request. */
export function tokensOfTurns(turns: readonly TextTurn[]): number {
  return usualTokensPerTurn * turns.length;
}
