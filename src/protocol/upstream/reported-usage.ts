import { isPlainObject } from '../../shared/parse-json.ts';
import type { Usage } from '../text.ts';
import { readCounts } from './token-counts.ts';
import type { TokenCounts, UsageNames } from './token-counts.ts';

/** Input tokens beyond the text that was sent: the provider's own prompt, and what its searches and tools found. */
const addedInputTokens = 131_072;

/** Output tokens beyond the text that came, thoughts that are not shown: a bound against absurd counts, not a limit of models. */
const hiddenThoughtTokens = 272_000;

/** More bytes than any token has: the longest tokens of today's models are runs of 128 spaces. */
const maxBytesPerToken = 256;

/** What went either way, as a measure of what an upstream can have counted. */
export interface Traffic {
  /** More tokens than the text that was sent can have: one for each byte, and some for each turn. */
  readonly sentTokens: number;
  /** The size of the text and the thoughts that came, in bytes. */
  readonly receivedBytes: number;
  /** Whether some of them came after the usage was reported, so that it can't have counted them. */
  readonly isStale: boolean;
}

/** Usage to charge by; or that it is missing; or why it can't be true, in words for the log. */
export type JudgedUsage =
  | { readonly kind: 'plausible'; readonly usage: Usage }
  | { readonly kind: 'missing' }
  | { readonly kind: 'implausible'; readonly why: string };

/**
 * The usage that an upstream reports in the course of one answer. A count that a later report leaves out, or has as
 * null, stays. Input may be estimated first and counted later, so a report that names both input and output has the last
 * word on the input. What is reported is used only as a whole and only if it can be true: a key is charged by it.
 */
export class ReportedUsage {
  /** The last values of the names that are read: others could be without end. */
  readonly #named: Record<string, unknown> = {};
  #counts: TokenCounts | null = null;
  /** The largest counts that were reported, in tokens. */
  #mostInput = 0;
  #mostOutput = 0;
  /** Whether the last report names both input and output. */
  #isWhole = false;

  /** Takes in what is reported; returns whether that counts any output. */
  add(usage: unknown, names: UsageNames): boolean {
    if (!isPlainObject(usage)) return false;
    const { input, output } = readCounts(usage, names);
    if (input !== null || output !== null) {
      this.#isWhole = (input ?? 0) > 0 && output !== null;
      // The total of an estimate would count what the estimate had too much as output.
      if (this.#isWhole) delete this.#named[names.total];
    }
    for (const name of namesIn(names)) if ((usage[name] ?? null) !== null) this.#named[name] = usage[name];
    this.#counts = readCounts(this.#named, names);
    this.#mostInput = Math.max(this.#mostInput, this.#counts.input ?? 0);
    this.#mostOutput = Math.max(this.#mostOutput, this.#counts.output ?? 0);
    return (output ?? 0) > 0;
  }

  /**
   * - missing: nothing was reported, or no input, or no output beside text or thoughts, or all of it before the last of
   *   them came. Providers send zeros for what they did not count.
   * - implausible: the output became smaller, or the input did in a report of the input alone, or a count is one that what went either way can't have.
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

function namesIn({ input, output, total, cached, cacheWrite, reasoning }: UsageNames): readonly string[] {
  const parts = [...cached, ...cacheWrite, ...reasoning].flatMap(([name = '']) => name);
  return [...input, ...output, total, ...parts];
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
