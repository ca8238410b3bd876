/** The part of a name that the `*` of a pattern matches; '' for a pattern without `*`, `null` without a match. */
export function matchName(pattern: string, name: string): string | null {
  const star = pattern.indexOf('*');
  if (star === -1) return pattern === name ? '' : null;
  const [before, after] = [pattern.slice(0, star), pattern.slice(star + 1)];
  const isLongEnough = name.length >= before.length + after.length;
  if (!isLongEnough || !name.startsWith(before) || !name.endsWith(after)) return null;
  return name.slice(before.length, name.length - after.length);
}

/** Renames by the first matching pattern: `org/*` to `*` turns `org/small` into `small`. Other names are returned as they are. */
export function renameBy(patterns: Readonly<Record<string, string>>, name: string): string {
  for (const [from, to] of Object.entries(patterns)) {
    const found = matchName(from, name);
    if (found !== null) return to.replace('*', () => found);
  }
  return name;
}
