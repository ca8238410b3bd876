/**
 * The children of a labelled metric, each looked up once: resolving labels costs an object and a hash of it, on every
 * request. Label values come from closed sets, so the table stays small.
 */
export function cacheByLabels<Child>(
  resolve: (...values: string[]) => Child,
): (...values: string[]) => Child {
  const children = new Map<string, Child>();
  return (...values) => {
    const name = values.join('\0');
    const known = children.get(name) ?? resolve(...values);
    children.set(name, known);
    return known;
  };
}
