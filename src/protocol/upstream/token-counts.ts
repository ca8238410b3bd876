import { isPlainObject } from '../../shared/parse-json.ts';

/** What each dialect calls the counts of a usage object. */
export interface UsageNames {
  /** Counts that add up to all input, and to all output. */
  readonly input: readonly string[];
  readonly output: readonly string[];
  readonly total: string;
  /** Where the parts of input and output may be: the names on the way to each count, of which the first counts. */
  readonly cached: readonly (readonly string[])[];
  readonly cacheWrite: readonly (readonly string[])[];
  readonly reasoning: readonly (readonly string[])[];
}

/** The counts that a usage object names, in tokens; `null` for one that it does not name. */
export interface TokenCounts {
  readonly input: number | null;
  readonly output: number | null;
  /** The parts of input and output; 0 where none is named. */
  readonly cached: number;
  readonly cacheWrite: number;
  readonly reasoning: number;
}

/**
 * Reads the counts of a usage object. Output is the larger of what is named and what the total implies, since some
 * providers leave thoughts out of the one but not of the other.
 */
export function readCounts(usage: Record<string, unknown>, names: UsageNames): TokenCounts {
  const input = sum(usage, names.input);
  const named = sum(usage, names.output);
  const total = count(usage[names.total]);
  const implied = input === null || total === null ? null : Math.max(0, total - input);
  return {
    input,
    output: named === null ? implied : Math.max(named, implied ?? 0),
    cached: firstCount(usage, names.cached),
    cacheWrite: firstCount(usage, names.cacheWrite),
    reasoning: firstCount(usage, names.reasoning),
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

/** A token count; `null` for an upstream's strings, fractions, negatives and what no integer can hold exactly. */
function count(value: unknown): number | null {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null;
}
