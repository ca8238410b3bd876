import { suggestion } from './describe-issue.ts';

/** As much of a config's shape as can be relied on before it is checked. */
interface UncheckedConfig {
  readonly upstreams?: Readonly<Record<string, unknown>>;
  readonly models?: Readonly<Record<string, unknown>>;
  readonly passthrough?: unknown;
}

function routesOf(entry: unknown): readonly ({ readonly upstream?: unknown } | null)[] {
  const { routes } = (entry ?? {}) as { readonly routes?: unknown };
  return Array.isArray(routes) ? routes : [];
}

/** Whether the models are to be asked of an upstream. */
export function discovers(input: unknown): boolean {
  return typeof (input as UncheckedConfig | null)?.models?.['from'] === 'string';
}

/** Looks at the unchecked config, so that a name that leads nowhere is reported along with all other problems. */
export function unknownUpstreams(input: unknown): readonly string[] {
  const { upstreams, models: offered, passthrough: passed } = (input ?? {}) as UncheckedConfig;
  if (typeof upstreams !== 'object' || upstreams === null) return [];
  const known = Object.keys(upstreams);
  const named = discovers(input)
    ? [{ path: 'models.from', target: offered?.['from'] }]
    : Object.entries(offered ?? {}).flatMap(([name, entry]) =>
        routesOf(entry).map((route, index) => ({
          path: `models.${name}.routes[${index}].upstream`,
          target: route?.upstream,
        })),
      );
  const passes = (Array.isArray(passed) ? passed : []).map((entry: { upstream?: unknown } | null, index) => ({
    path: `passthrough[${index}].upstream`,
    target: entry?.upstream,
  }));
  const demos = passes
    .filter(({ target }) => isDemo(upstreams[String(target)]))
    .map(({ path }) => `${path}: the built-in demo has no paths of its own`);
  const strangers = [...named, ...passes].flatMap(({ path, target }) =>
    typeof target !== 'string' || known.includes(target)
      ? []
      : [`${path}: no upstream is named '${target}'${suggestion(target, known)}`],
  );
  return [...strangers, ...demos];
}

function isDemo(upstream: unknown): boolean {
  const { url } = (upstream ?? {}) as { readonly url?: unknown };
  return typeof url === 'string' && url.startsWith('demo:');
}
