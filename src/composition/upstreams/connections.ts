import { proxyOf } from '../../config/proxy-environment.ts';
import type { FindProxy, NamedProxy } from '../../config/proxy-environment.ts';
import { proxyAuthorization } from '../../config/schema/proxy-values.ts';
import type { Config } from '../../config/schema/schema.ts';
import type { CallTarget, SettingNames } from '../../domain/diagnosis/call-target.ts';
import type { ConnectionOptions } from '../../transport/connector.ts';
import type { UpstreamFiles } from './upstream-files.ts';

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
  const proxy = proxyOf(config, '', findProxy);
  return {
    connectMs: timeouts.connect,
    allowLinkLocal,
    proxy: proxy === null ? null : { url: proxy.url, authorization: proxyAuthorization(proxy.url) },
    certificates: () => files.certificatesOf(name),
    serverName: tls?.serverName,
  };
}

/** The proxy of an upstream for its operator; `null` if it has none. */
export function describeProxy(
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

/** What messages must not show of an upstream's proxy. */
export function secretsOfProxy(proxy: NamedProxy | null): {
  readonly keys: string[];
  readonly hosts: string[];
} {
  if (proxy === null) return { keys: [], hosts: [] };
  const { username, password, host, hostname } = proxy.url;
  const authorization = proxyAuthorization(proxy.url);
  const written = [password, decodeURIComponent(password)].filter((text) => text !== '');
  return {
    keys: [...written, ...(authorization === null || username === '' ? [] : [authorization])],
    hosts: [host, hostname],
  };
}
