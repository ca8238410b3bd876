import { isPlainObject } from '../../shared/parse-json.ts';

/** A dialect's names for the counts of a usage object. */
interface NamesOfCounts {
  /** The counts that add up to the whole input, and to the whole output. */
  readonly input: readonly string[];
  readonly output: readonly string[];
  readonly total: string;
  /** Possible paths to the detailed counts; the first one found is used. */
  readonly cached: readonly (readonly string[])[];
  readonly cacheWrite: readonly (readonly string[])[];
  readonly reasoning: readonly (readonly string[])[];
}

/** The same, and the names of all fields that hold them, each once. */
export interface UsageNames extends NamesOfCounts {
  readonly fields: readonly string[];
}

/** Completes a dialect's names, once for all its answers. */
export function usageNamesOf(names: NamesOfCounts): UsageNames {
  const { input, output, total, cached, cacheWrite, reasoning } = names;
  const details = [...cached, ...cacheWrite, ...reasoning].flatMap(([field = '']) => field);
  return { ...names, fields: [...new Set([...input, ...output, total, ...details])] };
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
  let total: number | null = null;
  for (const name of names) {
    const found = count(usage[name]);
    if (found !== null) total = (total ?? 0) + found;
  }
  return total;
}

/** The first count found at one of these paths; 0 if there is none. */
function firstCount(usage: unknown, ways: readonly (readonly string[])[]): number {
  for (const way of ways) {
    const found = count(valueAt(usage, way));
    if (found !== null) return found;
  }
  return 0;
}

function valueAt(usage: unknown, way: readonly string[]): unknown {
  let here = usage;
  for (const name of way) here = isPlainObject(here) ? here[name] : undefined;
  return here;
}

/** A token count; `null` for strings, fractions, negative numbers and integers beyond exact representation. */
function count(value: unknown): number | null {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : null;
}
