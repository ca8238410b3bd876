import { proxyOf } from '../../config/proxy-environment.ts';
import type { FindProxy } from '../../config/proxy-environment.ts';
import { proxyAuthorization } from '../../config/schema/proxy-values.ts';
import type { Config } from '../../config/schema/schema.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import { describeTarget } from '../../domain/diagnosis/call-target.ts';
import type { CallTarget, SettingNames } from '../../domain/diagnosis/call-target.ts';
import { free } from '../../domain/money/pricing.ts';
import type { ModelSource } from '../../domain/routing.ts';
import type { Deadlines } from '../../transport/body-queue.ts';
import { createDemoUpstream } from '../../transport/demo-upstream.ts';
import type { Passthrough } from '../../http/passthrough/passthrough.ts';
import type { Probe } from '../../background/probe-upstreams.ts';
import { dialects } from '../../protocol/upstream/dialects.ts';
import type { UpstreamSecrets } from '../../protocol/upstream/words/sanitise.ts';
import { createAgent } from '../../transport/connections.ts';
import type { ConnectionOptions } from '../../transport/connector.ts';
import { createHttpUpstream } from '../../transport/http-upstream.ts';
import { forwardingOf } from '../../transport/proxy.ts';
import { createUpstreams } from '../../transport/upstreams.ts';
import type { Upstream } from '../../transport/upstreams.ts';
import type { UpstreamFiles } from './upstream-files.ts';
import { describeKeySource, headersOf, keySourceOf, tellRefusals } from './upstream-keys.ts';

type UpstreamConfig = Config['upstreams'][string];

/** What the connections to upstreams depend on beside the config. */
export interface Surroundings {
  readonly files: UpstreamFiles;
  /** The proxies of the environment. */
  readonly findProxy: FindProxy;
}

/** How connections to an upstream are opened. */
export function connectionsTo(
  name: string,
  config: UpstreamConfig,
  { files, findProxy }: Surroundings,
): ConnectionOptions {
  const { allowLinkLocal, timeouts, tls } = config;
  return {
    connectMs: timeouts.connect,
    allowLinkLocal,
    proxy: proxyFor(config, findProxy),
    certificates: () => files.certificatesOf(name),
    serverName: tls?.serverName,
  };
}

/** The proxy through which connections are opened; `null` for none. */
export function proxyFor(
  config: Parameters<typeof proxyOf>[0],
  findProxy: FindProxy,
): Exclude<ConnectionOptions['proxy'], undefined> {
  const found = proxyOf(config, '', findProxy);
  return found === null ? null : { url: found.url, authorization: proxyAuthorization(found.url) };
}

/** A client for every upstream of the config. */
export function composeUpstreams({ upstreams }: Config, surroundings: Surroundings, clock: Clock): Upstream {
  const { files } = surroundings;
  const byName = Object.entries(upstreams).map(([name, config]) => {
    const { url, learnLimits: learnsLimits } = config;
    const deadlines = deadlinesOf(config);
    const headers = headersOf(config, () => files.keyOf(name));
    const upstream =
      url.protocol === 'demo:'
        ? createDemoUpstream(deadlines, clock)
        : createHttpUpstream(
            { url, headers, deadlines, learnsLimits, ...connectionsTo(name, config, surroundings) },
            clock,
          );
    const keyRefused = keyRefusedOf(name, config, files);
    return [name, keyRefused === null ? upstream : tellRefusals(upstream, keyRefused)] as const;
  });
  return createUpstreams(new Map(byName));
}

/** Notes that an upstream refused its key; `null` where no command prints another one. */
function keyRefusedOf(
  name: string,
  config: UpstreamConfig,
  files: Surroundings['files'],
): (() => void) | null {
  return keySourceOf(config)?.kind === 'command' ? () => files.keyRefused(name) : null;
}

function deadlinesOf({ timeouts }: UpstreamConfig): Deadlines {
  return { firstByteMs: timeouts.firstByte, idleMs: timeouts.idle, totalMs: timeouts.total };
}

/** What the upstream's own messages must not show. */
function secretsOf(config: UpstreamConfig, key: string | null, findProxy: FindProxy): UpstreamSecrets {
  const { url, headers: added } = config;
  const keys = [...(key === null ? [] : [key]), ...Object.values(added), ...url.searchParams.values()];
  const hosts = url.host === '' ? [] : [url.host, url.hostname];
  const proxy = proxyOf(config, '', findProxy)?.url;
  if (proxy === undefined) return { keys, hosts };
  const written = [proxy.password, decodeURIComponent(proxy.password)].filter((text) => text !== '');
  const authorization = proxy.username === '' ? null : proxyAuthorization(proxy);
  return {
    keys: [...keys, ...written, ...(authorization === null ? [] : [authorization])],
    hosts: [...hosts, proxy.host, proxy.hostname],
  };
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
  // The config is right if it names a file or a command: what these yield has to be corrected.
  const source = keySourceOf(config);
  const names =
    source === null ? inConfig : { ...inConfig, apiKey: describeKeySource(source, inConfig.apiKey) };
  const hasKey = apiKey !== undefined || Object.keys(headers).length > 0;
  return describeTarget(url, hasKey, names, describeProxy(config, names, findProxy));
}

/** The proxy of an upstream for its operator; `null` if it has none. */
function describeProxy(
  config: UpstreamConfig,
  names: SettingNames,
  findProxy: FindProxy,
): CallTarget['proxy'] {
  const found = proxyOf(config, names.proxy, findProxy);
  if (found === null) return null;
  const { hostname, port, protocol } = found.url;
  const isTls = protocol === 'https:';
  return { address: `${hostname}:${port === '' ? (isTls ? 443 : 80) : port}`, isTls, name: found.name };
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
        keyRefused: keyRefusedOf(upstream, config, surroundings.files),
        agent: createAgent(url, connections),
        deadlines: deadlinesOf(config),
      },
    ];
  });
}

/** What the sources of models have beside the config. */
export interface SourceDetails extends Surroundings {
  readonly nameSettings: NameSettings;
}

/** How a model is called at an upstream, in the first of its dialects. The config's check guarantees that both exist. */
export function sourceOf(name: string, upstreams: Config['upstreams'], details: SourceDetails): ModelSource {
  const config = upstreams[name];
  const [spoken] = config?.dialects ?? [];
  if (config === undefined || spoken === undefined) throw new Error('a model without an upstream');
  const { thoughtTag = null, finishReason, onDisconnect, timeouts } = config;
  const { systemRole, maxTokensField, streamUsage } = config;
  return {
    upstream: name,
    target: targetOf(name, config, details),
    dialect: dialects[spoken],
    quirks: { systemRole, maxTokensField, streamUsage },
    finishReason,
    thoughtTag,
    ...(config.emptyAnswer === 'failed' ? { emptyFails: true } : {}),
    onDisconnect,
    totalMs: timeouts.total,
    ...(timeouts.firstText === undefined ? {} : { firstTextMs: timeouts.firstText }),
    secrets: () => secretsOf(config, details.files.keyOf(name), details.findProxy),
  };
}
