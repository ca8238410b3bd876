import { isPlainObject } from '../../shared/parse-json.ts';

/** A dialect's names for the counts of a usage object. */
export interface UsageNames {
  /** The counts that add up to the whole input, and to the whole output. */
  readonly input: readonly string[];
  readonly output: readonly string[];
  readonly total: string;
  /** Possible paths to the detailed counts; the first one found is used. */
  readonly cached: readonly (readonly string[])[];
  readonly cacheWrite: readonly (readonly string[])[];
  readonly reasoning: readonly (readonly string[])[];
}

/** The counts of a usage object, in tokens; `null` for a missing one. */
export interface TokenCounts {
  readonly input: number | null;
  readonly output: number | null;
  /** The detailed counts; 0 for a missing one. */
  readonly cached: number;
  readonly cacheWrite: number;
  readonly reasoning: number;
}

/**
 * Reads the counts of a usage object. Output is the larger of the reported output and the total minus the input, since
 * some providers leave thoughts out of one of them.
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

/** The sum of the named counts; `null` if all are missing. */
function sum(usage: Record<string, unknown>, names: readonly string[]): number | null {
  const counts = names.map((name) => count(usage[name])).filter((value) => value !== null);
  return counts.length === 0 ? null : counts.reduce((left, right) => left + right);
}

/** The first count found at one of these paths; 0 if there is none. */
function firstCount(usage: unknown, ways: readonly (readonly string[])[]): number {
  return ways.map((way) => count(valueAt(usage, way))).find((found) => found !== null) ?? 0;
}

function valueAt(usage: unknown, way: readonly string[]): unknown {
  return way.reduce<unknown>((here, name) => (isPlainObject(here) ? here[name] : undefined), usage);
}

/** A token count; `null` for strings, fractions, negative numbers and integers beyond exact representation. */
function count(value: unknown): number | null {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null;
}
