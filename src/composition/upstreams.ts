import { isDiscovered } from '../config/schema/schema.ts';
import type { Config } from '../config/schema/schema.ts';
import { createModelList } from '../models/model-list.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { ModelCatalogue } from '../domain/ports/models.ts';
import { describeTarget } from '../domain/diagnosis/call-target.ts';
import type { CallTarget, SettingNames } from '../domain/diagnosis/call-target.ts';
import { free } from '../domain/pricing.ts';
import { unknownCreation } from '../domain/routing.ts';
import type { ModelSource, OfferedModel } from '../domain/routing.ts';
import { createDemoUpstream } from '../transport/demo-upstream.ts';
import type { Passthrough } from '../http/passthrough.ts';
import type { Probe } from '../background/probe-upstreams.ts';
import { dialects } from '../protocol/upstream/dialects.ts';
import type { UpstreamSecrets } from '../protocol/upstream/words/sanitise.ts';
import { bearer } from '../protocol/upstream/dialect.ts';
import type { AuthScheme } from '../protocol/upstream/dialect.ts';
import { createAgent } from '../transport/agent.ts';
import { createHttpUpstream } from '../transport/http-upstream.ts';
import { createModelDiscovery } from '../models/model-discovery.ts';
import type { DiscoveryPorts, FetchedModelList, ModelDiscovery } from '../models/model-discovery.ts';
import { createUpstreams } from '../transport/upstreams.ts';
import type { Upstream } from '../transport/upstreams.ts';
import type { UpstreamKeys } from './upstream-keys.ts';

type UpstreamConfig = Config['upstreams'][string];

/** A client for every upstream of the config. */
export function composeUpstreams({ upstreams }: Config, keys: UpstreamKeys, clock: Clock): Upstream {
  const byName = Object.entries(upstreams).map(([name, config]) => {
    const { url, allowLinkLocal, timeouts } = config;
    const { connect: connectMs, firstByte: firstByteMs, idle: idleMs, total: totalMs } = timeouts;
    const deadlines = { firstByteMs, idleMs, totalMs };
    const headers = headersOf(config, () => keys.keyOf(name));
    const upstream =
      url.protocol === 'demo:'
        ? createDemoUpstream(deadlines, clock)
        : createHttpUpstream({ url, headers, connectMs, deadlines, allowLinkLocal }, clock);
    return [name, upstream] as const;
  });
  return createUpstreams(new Map(byName));
}

/**
 * Reads the headers of a call: the dialect's own, the API key in the dialect's scheme, and those of the config. They are
 * the same object until the key is another one.
 */
function headersOf(
  { authHeader, headers: added, dialects: [dialect] }: UpstreamConfig,
  readKey: () => string | null,
): () => Record<string, string> {
  if (dialect === undefined) throw new Error('upstream without a dialect');
  const { auth, headers = {} } = dialects[dialect];
  const { header, prefix } =
    authHeader === undefined || authHeader === auth.header ? auth : authSchemeFor(authHeader);
  const write = (key: string | null): Record<string, string> => ({
    ...headers,
    ...added,
    ...(key === null ? {} : { [header]: prefix + key }),
  });
  const first = readKey();
  let last = { key: first, headers: write(first) };
  return () => {
    const key = readKey();
    if (key !== last.key) last = { key, headers: write(key) };
    return last.headers;
  };
}

/** What the upstream's own messages must not show. */
function secretsOf({ url, headers: added }: UpstreamConfig, key: string | null): UpstreamSecrets {
  const keys = [...(key === null ? [] : [key]), ...Object.values(added), ...url.searchParams.values()];
  return { keys, hosts: url.host === '' ? [] : [url.host, url.hostname] };
}

/** The scheme for a header that the config chose in place of the dialect's. */
function authSchemeFor(header: string): AuthScheme {
  return header === bearer.header ? bearer : { header, prefix: '' };
}

/** Names the settings of an upstream for its operator. */
export type NameSettings = (upstream: string) => SettingNames;

/** An upstream's address and settings, for its operator. */
function targetOf(
  name: string,
  { url, apiKey, headers }: UpstreamConfig,
  nameSettings: NameSettings,
): CallTarget {
  const inConfig = nameSettings(name);
  // The config is right if it names a file: what the file holds has to be corrected.
  const names =
    typeof apiKey === 'object'
      ? { ...inConfig, apiKey: `the file ${apiKey.file} (${inConfig.apiKey})` }
      : inConfig;
  return describeTarget(url, apiKey !== undefined || Object.keys(headers).length > 0, names);
}

/** The health probes of the config. */
export function composeProbes({ upstreams }: Config, nameSettings: NameSettings): readonly Probe[] {
  return Object.entries(upstreams).flatMap(([upstream, config]) => {
    const { probe } = config;
    if (probe === undefined) return [];
    const target = targetOf(upstream, config, nameSettings);
    return [{ upstream, target, path: probe.path, intervalMs: probe.interval }];
  });
}

/** The passthrough paths of the config, with their upstreams' addresses, headers and deadlines. */
export function composePassthrough(
  { passthrough, upstreams }: Config,
  keys: UpstreamKeys,
): readonly Passthrough[] {
  return passthrough.flatMap(({ path, upstream, price, free: isFree }) => {
    const config = upstreams[upstream];
    if (config === undefined) return [];
    const { url, allowLinkLocal, timeouts } = config;
    const { firstByte: firstByteMs, idle: idleMs, total: totalMs } = timeouts;
    const deadlines = { firstByteMs, idleMs, totalMs };
    const agent = createAgent(url, { allowLinkLocal });
    return [
      {
        path,
        upstream,
        price: price === undefined && isFree === undefined ? null : { ...free, request: price?.request ?? 0 },
        origin: url.origin,
        headers: headersOf(config, () => keys.keyOf(upstream)),
        isGuarded: !allowLinkLocal,
        agent,
        deadlines,
      },
    ];
  });
}

/** The models of one config. */
export interface Models {
  readonly catalogue: ModelCatalogue;
  /** The models on offer; of a discovered catalogue, those of the last good list. */
  readonly offered: () => Iterable<OfferedModel>;
  /** The last good list of a discovered catalogue; `null` for a configured one. */
  readonly lastGood: () => ModelDiscovery['lastGood'];
  /** What is wrong with the latest list of a discovered catalogue, and what to do; `null` if nothing is known to be. */
  readonly problem: () => string | null;
  /** Fetches the list of a discovered catalogue if it is not known yet; `null` for a configured one, and after `close`. */
  fetchList(): Promise<FetchedModelList | null>;
  /** Ends a fetch under way. */
  close(): void;
}

/** What the sources of models have beside the config. */
interface SourceDetails {
  readonly nameSettings: NameSettings;
  readonly keys: UpstreamKeys;
}

/**
 * The catalogue of the config: its own models, or those that one of its upstreams lists. `lastGood` is a list of the
 * previous config that stays valid, because its source is unchanged; `null` if there is none.
 */
export function composeModels(
  { models, upstreams: configs }: Config,
  ports: DiscoveryPorts,
  details: SourceDetails,
  lastGood: ModelDiscovery['lastGood'],
): Models {
  if (isDiscovered(models)) {
    const { from, allow, rename, price = free, holdTokens } = models;
    const source = sourceOf(from, configs, details);
    const listPath = source.dialect.modelsPath;
    const offer = { source, listPath, allow, rename, price, holdTokens };
    const catalogue = createModelDiscovery(offer, ports, lastGood);
    const offered = (): Iterable<OfferedModel> => catalogue.lastGood?.values() ?? [];
    return {
      catalogue,
      offered,
      lastGood: () => catalogue.lastGood,
      problem: () => catalogue.problem,
      fetchList: () => catalogue.fetchList(),
      close: () => catalogue.close(),
    };
  }
  const offered = Object.entries(models).map(([id, { routes, price = free, holdTokens }]) => ({
    id,
    createdAtSeconds: unknownCreation,
    price,
    holdTokens,
    routes: routes.map(({ upstream, model, weight = null }) => ({
      ...sourceOf(upstream, configs, details),
      model,
      weight,
    })),
  }));
  return {
    catalogue: createModelList(offered),
    offered: () => offered,
    lastGood: () => null,
    problem: () => null,
    fetchList: async () => null,
    close: () => {},
  };
}

/** How a model is called at an upstream, in the first of its dialects. The config's check guarantees that both exist. */
export function sourceOf(
  name: string,
  upstreams: Config['upstreams'],
  { nameSettings, keys }: SourceDetails,
): ModelSource {
  const config = upstreams[name];
  const [spoken] = config?.dialects ?? [];
  if (config === undefined || spoken === undefined) throw new Error('a model without an upstream');
  const { finishReason, onDisconnect, systemRole, maxTokensField, streamUsage } = config;
  return {
    upstream: name,
    target: targetOf(name, config, nameSettings),
    dialect: dialects[spoken],
    quirks: { systemRole, maxTokensField, streamUsage },
    finishReason,
    onDisconnect,
    totalMs: config.timeouts.total,
    secrets: () => secretsOf(config, keys.keyOf(name)),
  };
}
