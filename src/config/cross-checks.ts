import { defaultAdminPort, defaultHost, defaultPort } from './default-addresses.ts';
import { suggestion } from './describe-issue.ts';
import { isPlainObject } from '../shared/parse-json.ts';
import { unlistedPrices } from './list-prices.ts';
import type { Problem } from './problem.ts';
import { unsharedWorkers } from './worker-settings.ts';

/**
 * The problems that no schema of one section finds: names that refer to nothing, and settings that exclude each other. They
 * are read from the unchecked config, so that they are reported with all others. A conflict of the listeners is found at
 * the one that is `blamed`.
 */
export function crossChecks(input: unknown, blamed: 'server' | 'admin'): readonly Problem[] {
  return [
    ...reservedNames(input),
    ...unknownUpstreams(input),
    ...unlistedPrices(input),
    ...unknownModels(input),
    ...unknownLimitedModels(input),
    ...unknownGroups(input),
    ...listenerConflicts(input, blamed),
    ...unsharedWorkers(input),
  ];
}

/** The parts of an unchecked config that hold references; any of them may have the wrong type. */
interface UncheckedConfig {
  readonly upstreams?: Readonly<Record<string, unknown>>;
  readonly models?: Readonly<Record<string, unknown>>;
  readonly passthrough?: unknown;
  readonly keys?: unknown;
  readonly groups?: unknown;
}

/** A reference of a model to an upstream; `path` begins below the model. */
interface Reference {
  readonly path: readonly (string | number)[];
  readonly target: unknown;
  /** The model's name there. */
  readonly model: unknown;
}

/** The upstreams of a model's routes, and of its shadow route. */
function referencesOf(entry: unknown): readonly Reference[] {
  const { routes, shadow } = (entry ?? {}) as {
    readonly routes?: unknown;
    readonly shadow?: unknown;
  };
  const refer = (path: Reference['path'], route: unknown): Reference => {
    const { upstream, model } = isPlainObject(route) ? route : {};
    return { path, target: upstream, model };
  };
  return [
    ...(Array.isArray(routes) ? routes : []).map((route: unknown, index) =>
      refer(['routes', index, 'upstream'], route),
    ),
    refer(['shadow', 'route', 'upstream'], isPlainObject(shadow) ? shadow['route'] : null),
  ];
}

/** Whether an unchecked config discovers its models from an upstream. */
export function usesDiscovery(input: unknown): boolean {
  return typeof (input as UncheckedConfig | null)?.models?.['from'] === 'string';
}

/** The problems of references to upstreams. */
function unknownUpstreams(input: unknown): readonly Problem[] {
  const { upstreams, models: offered, passthrough } = (input ?? {}) as UncheckedConfig;
  if (!isPlainObject(upstreams)) return [];
  const known = Object.keys(upstreams);
  const named = usesDiscovery(input)
    ? [{ path: ['models', 'from'], target: offered?.['from'] }]
    : Object.entries(offered ?? {}).flatMap(([name, entry]) =>
        referencesOf(entry).map(({ path, target }) => ({ path: ['models', name, ...path], target })),
      );
  const passthroughs = (Array.isArray(passthrough) ? passthrough : []).map(
    (entry: { upstream?: unknown } | null, index) => ({
      path: ['passthrough', index, 'upstream'],
      target: entry?.upstream,
    }),
  );
  const demos = passthroughs
    .filter(({ target }) => isDemo(upstreams[String(target)]))
    .map(({ path }) => ({ path, message: 'the built-in demo has no passthrough paths' }));
  const unknown = [...named, ...passthroughs].flatMap(({ path, target }) =>
    typeof target !== 'string' || known.includes(target)
      ? []
      : [{ path, message: `no upstream has this name${suggestion(target, known)}` }],
  );
  return [...unknown, ...demos];
}

function isDemo(upstream: unknown): boolean {
  const { url } = (upstream ?? {}) as { readonly url?: unknown };
  return typeof url === 'string' && url.startsWith('demo:');
}

/**
 * The problems of declared keys that name what is neither a model on offer nor a path that is passed on; none where the
 * models are discovered.
 */
function unknownModels(input: unknown): readonly Problem[] {
  const { models: offered, keys, passthrough } = (input ?? {}) as UncheckedConfig;
  if (usesDiscovery(input) || !isPlainObject(offered) || !isPlainObject(keys)) return [];
  const paths = (Array.isArray(passthrough) ? passthrough : []).flatMap((entry: unknown) =>
    isPlainObject(entry) && typeof entry['path'] === 'string' ? [entry['path']] : [],
  );
  const known = [...Object.keys(offered), ...paths];
  return Object.entries(keys).flatMap(([name, entry]) => {
    const named = isPlainObject(entry) ? entry['models'] : null;
    return (Array.isArray(named) ? named : []).flatMap((model: unknown, index) =>
      typeof model !== 'string' || model.includes('*') || known.includes(model)
        ? []
        : [
            {
              path: ['keys', name, 'models', index],
              message: `no model has this name${suggestion(model, known)}`,
            },
          ],
    );
  });
}

/** The problems of limits of models that no route has at their upstream; none at one whose models are discovered. */
function unknownLimitedModels(input: unknown): readonly Problem[] {
  const { upstreams, models: offered } = (input ?? {}) as UncheckedConfig;
  if (!isPlainObject(upstreams) || !isPlainObject(offered)) return [];
  const isListed = !usesDiscovery(input);
  const references = isListed ? Object.values(offered).flatMap(referencesOf) : [];
  return Object.entries(upstreams).flatMap(([upstream, entry]) => {
    const limited = isPlainObject(entry) ? entry['models'] : null;
    if (!isPlainObject(limited) || (!isListed && offered['from'] === upstream)) return [];
    const known = references.flatMap(({ target, model }) =>
      target === upstream && typeof model === 'string' ? [model] : [],
    );
    return Object.keys(limited).flatMap((model) => {
      if (known.includes(model)) return [];
      const hint = known.length === 0 ? '' : suggestion(model, known);
      return [
        { path: ['upstreams', upstream, 'models', model], message: `no route has this model here${hint}` },
      ];
    });
  });
}

/** The problems of declared keys that name a group which the config does not have: all of their requests would be refused. */
function unknownGroups(input: unknown): readonly Problem[] {
  const { keys, groups = {} } = (input ?? {}) as UncheckedConfig;
  if (!isPlainObject(groups) || !isPlainObject(keys)) return [];
  const known = Object.keys(groups);
  return Object.entries(keys).flatMap(([name, entry]) => {
    const group = isPlainObject(entry) ? entry['group'] : null;
    if (typeof group !== 'string' || known.includes(group)) return [];
    const hint = known.length === 0 ? ': `groups` has none' : suggestion(group, known);
    return [{ path: ['keys', name, 'group'], message: `no group has this name${hint}` }];
  });
}

/** Hosts that stand for every network of the machine. */
const wildcards = new Set<unknown>(['0.0.0.0', '::']);

/** Hosts that usually stand for the same machine alone. */
const loopbacks = new Set<unknown>(['127.0.0.1', 'localhost', '::1']);

/**
 * The problem of two listeners with one port, on hosts where only one of them can have it. It is found at the port of
 * the listener that is `blamed`.
 */
function listenerConflicts(input: unknown, blamed: 'server' | 'admin'): readonly Problem[] {
  if (sectionIn(input, 'server')['socket'] !== undefined) return socketConflicts(input);
  const server = addressIn(input, 'server', defaultPort);
  const admin = addressIn(input, 'admin', defaultAdminPort);
  if (server.port !== admin.port || server.port === 0 || !overlap(server.host, admin.host)) return [];
  const [other, usual] =
    blamed === 'admin' ? ['clients', defaultAdminPort] : (['operators', defaultPort] as const);
  const free = server.port === usual ? usual + 1 : usual;
  return [
    {
      path: [blamed, 'port'],
      message: `the same port as that of the listener for ${other}: write another one, such as ${free}`,
    },
  ];
}

/** The problems of an address beside a unix socket, which takes its place. */
function socketConflicts(input: unknown): readonly Problem[] {
  const section = sectionIn(input, 'server');
  return ['host', 'port']
    .filter((name) => section[name] !== undefined)
    .map((name) => ({
      path: ['server', name],
      message: 'server.socket takes the place of host and port: leave out either',
    }));
}

function overlap(one: unknown, other: unknown): boolean {
  const either = [one, other];
  return (
    one === other ||
    either.some((host) => wildcards.has(host)) ||
    (either.includes('localhost') && either.every((host) => loopbacks.has(host)))
  );
}

/** The address of a listener in an unchecked config. A port in digits counts as a number, as it does in the schema. */
function addressIn(
  input: unknown,
  section: 'server' | 'admin',
  usualPort: number,
): { readonly host: unknown; readonly port: unknown } {
  const { host = defaultHost, port = usualPort } = sectionIn(input, section);
  return { host, port: typeof port === 'string' && /^\d+$/.test(port) ? Number(port) : port };
}

function sectionIn(input: unknown, section: 'server' | 'admin'): Readonly<Record<string, unknown>> {
  const sections = (input ?? {}) as Readonly<Record<string, unknown>>;
  return (sections[section] ?? {}) as Readonly<Record<string, unknown>>;
}

/** The schema's library leaves this name out of an object with names of the author's choice, and reports nothing. */
export const reserved = '__proto__';

/** The problems of names that the config may not give to anything. */
function reservedNames(input: unknown): readonly Problem[] {
  const upstreams = Object.keys(objectAt(input, ['upstreams'])).map((name) => ['upstreams', name, 'headers']);
  return [['upstreams'], ['models'], ['keys'], ['groups'], ['webhooks'], ...upstreams]
    .filter((path) => Object.hasOwn(objectAt(input, path), reserved))
    .map((path) => ({ path: [...path, reserved], message: 'this name is reserved: choose another one' }));
}

/** The object at a path of an unchecked config; an empty one where there is none. */
function objectAt(input: unknown, path: readonly string[]): object {
  let here = input;
  for (const key of path) here = isPlainObject(here) && Object.hasOwn(here, key) ? here[key] : null;
  return isPlainObject(here) ? here : {};
}
