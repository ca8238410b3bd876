import { costOf, noTokens } from '../../src/domain/money/pricing.ts';
import { modelPrice } from '../support/model-price.ts';
import type { ServedTokens } from './numbered-upstream.ts';

/** The price of the model in these runs, in a config. Input is cheap: its tokens are numbers of questions. */
export const configuredPrice = { input: '0.03', output: '7' };
const price = modelPrice({ input: 30_000_000, output: 7_000_000_000 });

/** What a question costs by the count of its upstream, in nano-USD; one that was not served costs nothing. */
export function costOfServed(tokens: ServedTokens | undefined): number {
  const { input = 0, output = 0 } = tokens ?? {};
  return costOf({ ...noTokens, inputTokens: input, outputTokens: output }, price);
}
