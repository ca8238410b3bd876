import { isPlainObject } from '../../shared/parse-json.ts';
import type { Usage } from '../text.ts';
import { readCounts } from './token-counts.ts';
import type { TokenCounts, UsageNames } from './token-counts.ts';

/** The most input tokens beyond the sent text: the provider's own prompt, and the results of its searches and tools. */
const addedInputTokens = 131_072;

/** The most output tokens for hidden thoughts: a bound against absurd counts, not a limit of models. */
const hiddenThoughtTokens = 272_000;

/** An upper bound of a token's size: the longest tokens of today's models are runs of 128 spaces. */
const maxBytesPerToken = 256;

/** The amount of text in both directions, which bounds the plausible counts. */
export interface Traffic {
  /** An upper bound of the sent tokens: one for each byte, and some for each turn. */
  readonly sentTokens: number;
  /** The size of the received text and thoughts, in bytes. */
  readonly receivedBytes: number;
  /** Whether text or thoughts arrived after the last usage report, which can't have counted them. */
  readonly isStale: boolean;
}

/** Usage to charge by; or that it is missing; or why it can't be true, in words for the log. */
export type JudgedUsage =
  | { readonly kind: 'plausible'; readonly usage: Usage }
  | { readonly kind: 'missing' }
  | { readonly kind: 'implausible'; readonly why: string };

/**
 * The usage that an upstream reports in the course of one answer. A count stays if a later report leaves it out or has
 * it as null. Some providers estimate the input first and count it later, so a report with both input and output
 * replaces the input. Usage is used only if it is complete and plausible: a key is charged by it.
 */
export class ReportedUsage {
  /** The last value of each known name. Unknown names are not kept: an upstream could send any number of them. */
  readonly #named: Record<string, unknown> = {};
  #counts: TokenCounts | null = null;
  /** The largest counts that were reported, in tokens. */
  #mostInput = 0;
  #mostOutput = 0;
  /** Whether the last report had both input and output. */
  #isWhole = false;

  /** Adds a report; returns whether it counts any output. */
  add(usage: unknown, names: UsageNames): boolean {
    if (!isPlainObject(usage)) return false;
    const counts = readCounts(usage, names);
    const { input, output } = counts;
    if (input !== null || output !== null) {
      this.#isWhole = (input ?? 0) > 0 && output !== null;
      // The total of an earlier, too large estimate would count the excess as output.
      if (this.#isWhole) this.#named[names.total] = null;
    }
    for (const name of names.fields) if ((usage[name] ?? null) !== null) this.#named[name] = usage[name];
    this.#counts = this.#counts === null ? counts : readCounts(this.#named, names);
    this.#mostInput = Math.max(this.#mostInput, this.#counts.input ?? 0);
    this.#mostOutput = Math.max(this.#mostOutput, this.#counts.output ?? 0);
    return (output ?? 0) > 0;
  }

  /**
   * Judges the reports:
   * - missing: no report, no input, no output although text or thoughts arrived, or all reports came before the last
   *   text or thought. Providers send zeros for tokens that they did not count.
   * - implausible: the output became smaller, or the input did in a report without output, or a count is out of
   *   proportion to the text.
   */
  judge({ sentTokens, receivedBytes, isStale }: Traffic): JudgedUsage {
    const { input, output } = this.#counts ?? { input: null, output: null };
    const isWhole = (input ?? 0) > 0 && ((output ?? 0) > 0 || receivedBytes === 0);
    if (this.#counts === null || input === null || !isWhole || isStale) return { kind: 'missing' };
    const outputTokens = output ?? 0;
    if (outputTokens < this.#mostOutput || (input < this.#mostInput && !this.#isWhole))
      return { kind: 'implausible', why: 'a later count is smaller than an earlier one' };
    if (input > sentTokens + addedInputTokens)
      return { kind: 'implausible', why: `${input} input tokens for a text of at most ${sentTokens}` };
    if (outputTokens > receivedBytes + hiddenThoughtTokens || receivedBytes > outputTokens * maxBytesPerToken)
      return { kind: 'implausible', why: `${outputTokens} output tokens for ${receivedBytes} bytes` };
    return { kind: 'plausible', usage: usageOf(this.#counts, input, outputTokens) };
  }
}

/** Parts are never larger than their whole. */
function usageOf(
  { cached, cacheWrite, reasoning }: TokenCounts,
  inputTokens: number,
  outputTokens: number,
): Usage {
  const cachedInputTokens = Math.min(inputTokens, cached);
  return {
    inputTokens,
    cachedInputTokens,
    cacheWriteTokens: Math.min(inputTokens - cachedInputTokens, cacheWrite),
    outputTokens,
    reasoningTokens: Math.min(outputTokens, reasoning),
    totalTokens: inputTokens + outputTokens,
  };
}
