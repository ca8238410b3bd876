/** A matcher of one metric's label. */
export interface Matcher {
  readonly metric: string;
  readonly label: string;
  /** Its values, or patterns for them. */
  readonly values: readonly string[];
}

const keywords = new Set(['and', 'or', 'unless', 'offset', 'bool', 'inf', 'nan', 'by', 'without']);

/** The names of the metrics and recorded series in a PromQL expression. */
export function metricNames(expression: string): string[] {
  const bare = expression
    .replace(/"[^"]*"/g, '')
    .replace(/\{[^}]*\}|\[[^\]]*\]/g, '')
    .replace(/\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, '');
  const words = bare.matchAll(/(?<![\w:$.])[a-zA-Z_:][\w:]*(?!\w|:|\s*\()/g);
  return [...new Set([...words].map(([word]) => word))].filter((word) => !keywords.has(word.toLowerCase()));
}

/** Every label matcher of the expression. */
export function matchers(expression: string): Matcher[] {
  const selectors = [...expression.matchAll(/([a-zA-Z_:][\w:]*)\{([^}]*)\}/g)];
  return selectors.flatMap(([, metric = '', inside = '']) =>
    [...inside.matchAll(/(\w+)\s*[!=]([=~]?)"([^"]*)"/g)].map(([, label = '', kind, value = '']) => ({
      metric,
      label,
      values: kind === '~' ? value.split('|') : [value],
    })),
  );
}
