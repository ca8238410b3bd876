/** Numbers of the rolling hash: its base, and the size of the table that tells most misses apart from hits. */
const base = 0x01000193;
const tableSize = 65_536;

/**
 * Finds which windows of a text also occur in another one: returns those of `starts` whose next `length` units do. Each
 * unit of either text is looked at a fixed number of times, however often they repeat themselves.
 */
export function findWindows(
  text: readonly number[],
  starts: Iterable<number>,
  length: number,
  other: readonly number[],
): readonly number[] {
  const wanted = new Map<number, number[]>();
  const table = new Uint8Array(tableSize);
  for (const start of starts) {
    let hash = 0;
    for (let at = start; at < start + length; at++) hash = (Math.imul(hash, base) + (text[at] ?? 0)) | 0;
    const same = wanted.get(hash);
    if (same === undefined) wanted.set(hash, [start]);
    else same.push(start);
    table[hash & (tableSize - 1)] = 1;
  }
  const found: number[] = [];
  if (wanted.size === 0) return found;
  let leaving = 1;
  for (let step = 0; step < length; step++) leaving = Math.imul(leaving, base);
  let hash = 0;
  for (let at = 0; at < other.length && wanted.size > 0; at++) {
    hash = (Math.imul(hash, base) + (other[at] ?? 0)) | 0;
    if (at >= length) hash = (hash - Math.imul(leaving, other[at - length] ?? 0)) | 0;
    if (at < length - 1 || table[hash & (tableSize - 1)] === 0) continue;
    const same = wanted.get(hash);
    // A window is looked for once: a repeated one would otherwise be compared at each of its occurrences.
    if (same === undefined || !isSame(text, same[0] ?? 0, other, at + 1 - length, length)) continue;
    wanted.delete(hash);
    for (const start of same) found.push(start);
  }
  return found;
}

/**
 * The runs of at least `length` units that a text shares with another one, as pairs of start and end, in order. Only runs
 * of units for which `counts` holds are found.
 */
export function findSharedRuns(
  text: readonly number[],
  length: number,
  other: readonly number[],
  counts: (unit: number) => boolean = () => true,
): readonly (readonly [number, number])[] {
  const starts: number[] = [];
  let run = 0;
  for (const [at, unit] of text.entries()) {
    run = counts(unit) ? run + 1 : 0;
    if (run >= length) starts.push(at + 1 - length);
  }
  const runs: [number, number][] = [];
  for (const start of findWindows(text, starts, length, other).toSorted((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last !== undefined && start <= last[1]) last[1] = start + length;
    else runs.push([start, start + length]);
  }
  return runs;
}

function isSame(
  text: readonly number[],
  start: number,
  other: readonly number[],
  otherStart: number,
  length: number,
): boolean {
  for (let at = 0; at < length; at++) if (text[start + at] !== other[otherStart + at]) return false;
  return true;
}
