import { proxyOf } from '../config/proxy-environment.ts';
import type { FindProxy } from '../config/proxy-environment.ts';
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
import type { Deadlines } from '../transport/body-queue.ts';
import { createDemoUpstream } from '../transport/demo-upstream.ts';
import type { Passthrough } from '../http/passthrough.ts';
import type { Probe } from '../background/probe-upstreams.ts';
import { dialects } from '../protocol/upstream/dialects.ts';
import type { UpstreamSecrets } from '../protocol/upstream/words/sanitise.ts';
import { bearer } from '../protocol/upstream/dialect.ts';
import type { AuthScheme } from '../protocol/upstream/dialect.ts';
import { createAgent } from '../transport/agent.ts';
import { createHttpUpstream } from '../transport/http-upstream.ts';
import { forwardingOf } from '../transport/proxy.ts';
import { createModelDiscovery } from '../models/model-discovery.ts';
import type { DiscoveryPorts, FetchedModelList, ModelDiscovery } from '../models/model-discovery.ts';
import { createUpstreams } from '../transport/upstreams.ts';
import type { Upstream } from '../transport/upstreams.ts';
import { connectionsTo, describeProxy, secretsOfProxy } from './connections.ts';
import type { Surroundings } from './connections.ts';

type UpstreamConfig = Config['upstreams'][string];

/** A client for every upstream of the config. */
export function composeUpstreams({ upstreams }: Config, surroundings: Surroundings, clock: Clock): Upstream {
  const { files } = surroundings;
  const byName = Object.entries(upstreams).map(([name, config]) => {
    const { url } = config;
    const deadlines = deadlinesOf(config);
    const headers = headersOf(config, () => files.keyOf(name));
    const upstream =
      url.protocol === 'demo:'
        ? createDemoUpstream(deadlines, clock)
        : createHttpUpstream(
            { url, headers, deadlines, ...connectionsTo(name, config, surroundings) },
            clock,
          );
    return [name, upstream] as const;
  });
  return createUpstreams(new Map(byName));
}

function deadlinesOf({ timeouts }: UpstreamConfig): Deadlines {
  return { firstByteMs: timeouts.firstByte, idleMs: timeouts.idle, totalMs: timeouts.total };
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
function secretsOf(config: UpstreamConfig, key: string | null, findProxy: FindProxy): UpstreamSecrets {
  const { url, headers: added } = config;
  const ofProxy = secretsOfProxy(proxyOf(config, '', findProxy));
  const own = [...(key === null ? [] : [key]), ...Object.values(added), ...url.searchParams.values()];
  const hosts = url.host === '' ? [] : [url.host, url.hostname];
  return { keys: [...own, ...ofProxy.keys], hosts: [...hosts, ...ofProxy.hosts] };
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
  config: UpstreamConfig,
  { nameSettings, findProxy }: Pick<SourceDetails, 'nameSettings' | 'findProxy'>,
): CallTarget {
  const { url, apiKey, headers } = config;
  const inConfig = nameSettings(name);
  // The config is right if it names a file: what the file holds has to be corrected.
  const names =
    typeof apiKey === 'object'
      ? { ...inConfig, apiKey: `the file ${apiKey.file} (${inConfig.apiKey})` }
      : inConfig;
  const hasKey = apiKey !== undefined || Object.keys(headers).length > 0;
  return describeTarget(url, hasKey, names, describeProxy(config, names, findProxy));
}

/** The health probes of the config. */
export function composeProbes({ upstreams }: Config, details: SourceDetails): readonly Probe[] {
  return Object.entries(upstreams).flatMap(([upstream, config]) => {
    const { probe } = config;
    if (probe === undefined) return [];
    const target = targetOf(upstream, config, details);
    return [{ upstream, target, path: probe.path, intervalMs: probe.interval }];
  });
}

/** The passthrough paths of the config, with their upstreams' addresses, headers and deadlines. */
export function composePassthrough(
  { passthrough, upstreams }: Config,
  surroundings: Surroundings,
): readonly Passthrough[] {
  return passthrough.flatMap(({ path, upstream, price, free: isFree }) => {
    const config = upstreams[upstream];
    if (config === undefined) return [];
    const { url } = config;
    const connections = connectionsTo(upstream, config, surroundings);
    return [
      {
        path,
        upstream,
        price: price === undefined && isFree === undefined ? null : { ...free, request: price?.request ?? 0 },
        origin: url.origin,
        forwarding: forwardingOf(url, connections.proxy),
        headers: headersOf(config, () => surroundings.files.keyOf(upstream)),
        agent: createAgent(url, connections),
        deadlines: deadlinesOf(config),
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
interface SourceDetails extends Surroundings {
  readonly nameSettings: NameSettings;
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
export function sourceOf(name: string, upstreams: Config['upstreams'], details: SourceDetails): ModelSource {
  const config = upstreams[name];
  const [spoken] = config?.dialects ?? [];
  if (config === undefined || spoken === undefined) throw new Error('a model without an upstream');
  const { finishReason, onDisconnect, systemRole, maxTokensField, streamUsage } = config;
  return {
    upstream: name,
    target: targetOf(name, config, details),
    dialect: dialects[spoken],
    quirks: { systemRole, maxTokensField, streamUsage },
    finishReason,
    onDisconnect,
    totalMs: config.timeouts.total,
    secrets: () => secretsOf(config, details.files.keyOf(name), details.findProxy),
  };
}
