import { isPlainObject } from '../../shared/parse-json.ts';
import type { Usage } from '../text.ts';

/** More tokens than any answer can have; a larger count is an upstream's mistake. */
const maxTokens = 1e12;

/** What each dialect calls the counts of a usage object. */
export interface UsageNames {
  /** Counts that add up to all input, and to all output. */
  readonly input: readonly string[];
  readonly output: readonly string[];
  readonly total: string;
  /** Where the parts of input and output may be: the names on the way to each count, of which the first counts. */
  readonly cached: readonly (readonly string[])[];
  readonly reasoning: readonly (readonly string[])[];
}

/**
 * The counts of a usage object; `null` when it names none. Output is the larger of what was named and what the total
 * implies, since some providers leave thoughts out of the one but not of the other.
 */
export function readUsage(usage: unknown, names: UsageNames): Usage | null {
  if (!isPlainObject(usage)) return null;
  const input = sum(usage, names.input);
  const named = sum(usage, names.output);
  const total = count(usage[names.total]);
  if (input === null && named === null && total === null) return null;
  const inputTokens = input ?? 0;
  const implied = input === null ? 0 : (total ?? 0) - inputTokens;
  const outputTokens = Math.max(named ?? 0, implied);
  const cached = firstCount(usage, names.cached);
  const reasoning = firstCount(usage, names.reasoning);
  return {
    inputTokens,
    cachedInputTokens: Math.min(inputTokens, cached),
    outputTokens,
    reasoningTokens: Math.min(outputTokens, reasoning),
    totalTokens: inputTokens + outputTokens,
  };
}

/** What the named counts add up to; `null` when none of them is there. */
function sum(usage: Record<string, unknown>, names: readonly string[]): number | null {
  const counts = names.map((name) => count(usage[name])).filter((value) => value !== null);
  return counts.length === 0 ? null : counts.reduce((left, right) => left + right);
}

/** The first count that is at the end of any of these ways; none when there is none. */
function firstCount(usage: unknown, ways: readonly (readonly string[])[]): number {
  return ways.map((way) => count(valueAt(usage, way))).find((found) => found !== null) ?? 0;
}

function valueAt(usage: unknown, way: readonly string[]): unknown {
  return way.reduce<unknown>((here, name) => (isPlainObject(here) ? here[name] : undefined), usage);
}

/** A token count that can be added up; `null` for an upstream's strings, fractions, negatives and absurdities. */
function count(value: unknown): number | null {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maxTokens
    ? (value as number)
    : null;
}
