/**
 * Caches the children of a labelled metric by their label values, in declared order: resolving labels costs an object
 * and a hash of it, on every request. Label values come from closed sets, so the cache stays small.
 */
export function cacheChildren<Child>(
  resolve: (...values: string[]) => Child,
): (...values: string[]) => Child {
  const children = new Map<string, Child>();
  return (...values) => {
    const name = values.join('\0');
    const child = children.get(name) ?? resolve(...values);
    children.set(name, child);
    return child;
  };
}
