/** The metrics that a gateway exports, as its exposition text lists them. */
export interface Exposition {
  /** The names that queries may use. */
  readonly names: ReadonlySet<string>;
  /** The current values of a metric's label; `undefined` if it has no such label. */
  values(metric: string, label: string): readonly string[] | undefined;
}

export async function readExposition(adminUrl: string): Promise<Exposition> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  const samples = [...text.matchAll(/^([\w:]+)\{(.*)\} \S+$/gm)];
  return {
    names: new Set(types.flatMap(([, name = '', type]) => (type === 'histogram' ? partsOf(name) : [name]))),
    values(metric, label) {
      const own = samples.filter(([, name]) => name === metric);
      const found = own.flatMap(
        ([, , labels = '']) => new RegExp(`\\b${label}="([^"]*)"`).exec(labels)?.[1] ?? [],
      );
      return found.length === 0 ? undefined : [...new Set(found)];
    },
  };
}

function partsOf(histogram: string): string[] {
  return ['_bucket', '_sum', '_count'].map((part) => histogram + part);
}
