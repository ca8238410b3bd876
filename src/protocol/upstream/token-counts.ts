import { isPlainObject } from '../../shared/parse-json.ts';
import type { Usage } from '../text.ts';

/** More tokens than any answer can have; a larger count is an upstream's mistake. */
const maxTokens = 1e12;

/** What each dialect calls the counts of a usage object. */
export interface UsageNames {
  readonly input: string;
  readonly output: string;
  readonly inputDetails: string;
  readonly outputDetails: string;
}

/**
 * The counts of a usage object; `null` when it names none. Output is the larger of what was named and what the total
 * implies, since some providers leave thoughts out of the one but not of the other.
 */
export function readUsage(usage: unknown, names: UsageNames): Usage | null {
  if (!isPlainObject(usage)) return null;
  const input = count(usage[names.input]);
  const named = count(usage[names.output]);
  const total = count(usage['total_tokens']);
  if (input === null && named === null && total === null) return null;
  const inputTokens = input ?? 0;
  const implied = input === null ? 0 : (total ?? 0) - inputTokens;
  const outputTokens = Math.max(named ?? 0, implied);
  const cached = count(detail(usage, names.inputDetails, 'cached_tokens')) ?? 0;
  const reasoning = count(detail(usage, names.outputDetails, 'reasoning_tokens')) ?? 0;
  return {
    inputTokens,
    cachedInputTokens: Math.min(inputTokens, cached),
    outputTokens,
    reasoningTokens: Math.min(outputTokens, reasoning),
    totalTokens: inputTokens + outputTokens,
  };
}

function detail(usage: Record<string, unknown>, group: string, name: string): unknown {
  const details = usage[group];
  return isPlainObject(details) ? details[name] : undefined;
}

/** A token count that can be added up; `null` for an upstream's strings, fractions, negatives and absurdities. */
function count(value: unknown): number | null {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maxTokens
    ? (value as number)
    : null;
}
