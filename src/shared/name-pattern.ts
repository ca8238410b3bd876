/** What a `*` of a pattern stands for in a name; '' for a pattern without one, `null` if the name does not fit. */
export function matchName(pattern: string, name: string): string | null {
  const star = pattern.indexOf('*');
  if (star === -1) return pattern === name ? '' : null;
  const [before, after] = [pattern.slice(0, star), pattern.slice(star + 1)];
  const isLongEnough = name.length >= before.length + after.length;
  if (!isLongEnough || !name.startsWith(before) || !name.endsWith(after)) return null;
  return name.slice(before.length, name.length - after.length);
}

/** A name under the first pattern that it fits: `org/*` to `*` makes `org/small` into `small`. Others stay. */
export function renameBy(patterns: Readonly<Record<string, string>>, name: string): string {
  for (const [from, to] of Object.entries(patterns)) {
    const found = matchName(from, name);
    if (found !== null) return to.replace('*', () => found);
  }
  return name;
}
