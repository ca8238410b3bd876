import { isPlainObject } from '../../shared/parse-json.ts';
import type { Usage } from '../text.ts';
import { readCounts, readUsage } from './usage-reading.ts';
import type { ReportedCounts, CachePlace, UsageReading } from './usage-reading.ts';

/** The most input tokens beyond the sent text: the provider's own prompt, and the results of its searches and tools. */
const addedInputTokens = 131_072;

/** The most output tokens for hidden thoughts: a bound against absurd counts, not a limit of models. */
const hiddenThoughtTokens = 272_000;

/** An upper bound of a token's size: the longest tokens of today's models are runs of 128 spaces. */
const maxBytesPerToken = 256;

/** The amount of text in both directions, which bounds the plausible counts. */
interface Traffic {
  /** An upper bound of the sent tokens: one for each byte, and some for each turn. */
  readonly sentTokens: number;
  /** The size of the received text and thoughts, in bytes. */
  readonly receivedBytes: number;
  /** Whether text or thoughts arrived after the last usage report, which can't have counted them. */
  readonly isStale: boolean;
}

/** Usage to charge by; or that it is missing; or why it can't be true, in words for the log. */
type JudgedUsage =
  /** `hasExcess`: more reasoning was named than output, which may be counted otherwise or stand beside it. */
  | { readonly kind: 'plausible'; readonly usage: Usage; readonly hasExcess: boolean }
  | { readonly kind: 'missing' }
  /** `named` are the counts where they don't add up: no more than these is charged by our own count. */
  | { readonly kind: 'implausible'; readonly why: string; readonly named: NamedTokens | null };

/** The input and output that an upstream named, in tokens. */
export interface NamedTokens {
  readonly input: number;
  readonly output: number;
}

/**
 * The usage that an upstream reports in the course of one answer. A count stays if a later report leaves it out or has
 * it as null or 0. Some providers estimate the input first and count it later, so a report with both input and output
 * replaces the input. Usage is used only if it is complete and plausible: a key is charged by it.
 */
export class ReportedUsage {
  #counts: ReportedCounts | null = null;
  #reading: UsageReading | null = null;
  /** The largest counts that were reported, in tokens. */
  #mostInput = 0;
  #mostOutput = 0;
  /** Whether the last report had both input and output. */
  #isWhole = false;

  /** Adds a report of a dialect that has cached input in this place; returns whether it counts any output. */
  add(usage: unknown, cache: CachePlace): boolean {
    if (!isPlainObject(usage)) return false;
    const counts = readCounts(usage);
    const hasInput = isCounted(counts.prompt);
    const hasOutput = isCounted(counts.completion) || isCounted(counts.thoughts);
    if (hasInput || hasOutput) this.#isWhole = hasInput && hasOutput;
    const before = this.#counts;
    this.#counts = before === null ? counts : merge(before, counts, this.#isWhole);
    const { input, output } = (this.#reading = readUsage(this.#counts, cache));
    this.#mostInput = Math.max(this.#mostInput, input ?? 0);
    this.#mostOutput = Math.max(this.#mostOutput, output ?? 0);
    return hasOutput;
  }

  /**
   * Judges the reports:
   * - missing: no report, no input, no output although text or thoughts arrived, or all reports came before the last
   *   text or thought. Providers send zeros for tokens that they did not count.
   * - implausible: the output became smaller, or the input did in a report without output, or a count is out of
   *   proportion to the text, or the total has tokens that no count explains.
   */
  judge({ sentTokens, receivedBytes, isStale }: Traffic): JudgedUsage {
    const reading = this.#reading;
    const { input, output } = reading ?? { input: null, output: null };
    const isComplete = isCounted(input) && (isCounted(output) || receivedBytes === 0);
    if (reading === null || input === null || !isComplete || isStale) return { kind: 'missing' };
    const outputTokens = output ?? 0;
    if (outputTokens < this.#mostOutput || (input < this.#mostInput && !this.#isWhole))
      return implausible('a later count is smaller than an earlier one');
    if (input > sentTokens + addedInputTokens)
      return implausible(`${input} input tokens for a text of at most ${sentTokens}`);
    if (outputTokens > receivedBytes + hiddenThoughtTokens || receivedBytes > outputTokens * maxBytesPerToken)
      return implausible(`${outputTokens} output tokens for ${receivedBytes} bytes`);
    const named = { input, output: outputTokens };
    if (reading.unexplained > 0)
      return implausible(`a total with ${reading.unexplained} tokens that no count explains`, named);
    return { kind: 'plausible', usage: usageOf(reading, named), hasExcess: reading.reasoning > outputTokens };
  }
}

/** Adds a later report to the earlier ones. A whole one has a total of its own: that of an earlier estimate would not fit it. */
function merge(before: ReportedCounts, later: ReportedCounts, isWhole: boolean): ReportedCounts {
  return {
    prompt: lastOf(before.prompt, later.prompt),
    tools: later.tools ?? before.tools,
    completion: lastOf(before.completion, later.completion),
    thoughts: lastOf(before.thoughts, later.thoughts),
    total: isWhole ? later.total : lastOf(before.total, later.total),
    cached: lastOf(before.cached, later.cached),
    written: lastOf(before.written, later.written),
    reasoning: lastOf(before.reasoning, later.reasoning),
  };
}

/** A later count replaces an earlier one, unless it has no tokens: some upstreams end with a report of zeros. */
function lastOf(before: number | null, later: number | null): number | null {
  return isCounted(later) ? later : (before ?? later);
}

function isCounted(tokens: number | null): tokens is number {
  return tokens !== null && tokens > 0;
}

function implausible(why: string, named: NamedTokens | null = null): JudgedUsage {
  return { kind: 'implausible', why, named };
}

/** Parts are never larger than their whole. */
function usageOf({ cached, written, reasoning }: UsageReading, { input, output }: NamedTokens): Usage {
  const cachedInputTokens = Math.min(input, cached);
  return {
    inputTokens: input,
    cachedInputTokens,
    cacheWriteTokens: Math.min(input - cachedInputTokens, written),
    outputTokens: output,
    reasoningTokens: Math.min(output, reasoning),
    totalTokens: input + output,
  };
}
