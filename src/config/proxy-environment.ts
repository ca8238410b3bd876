import { isLoopback } from '../shared/ip-address.ts';
import { canonicalAddress, canonicalNetwork, compileNetworks } from '../shared/networks.ts';
import type { NetworkTest } from '../shared/networks.ts';
import { readVariable } from './environment.ts';
import type { Environment } from './environment.ts';
import { ConfigError } from './load.ts';
import { noProxy, readProxyUrl } from './schema/proxy-values.ts';

/** The proxy for an upstream, and the setting or variable that names it. */
interface NamedProxy {
  readonly url: URL;
  readonly name: string;
}

/** The proxies of the environment: finds that of an address; `null` if it is reached without one. */
export type FindProxy = (url: URL) => NamedProxy | null;

/** By the scheme of an upstream: the variables that name its proxy, the first one that is set counts. */
const variables: Readonly<Record<string, readonly string[]>> = {
  'https:': ['https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY'],
  'http:': ['http_proxy', 'HTTP_PROXY', 'all_proxy', 'ALL_PROXY'],
};

/**
 * Reads the proxies of the environment: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in lower case, too, which
 * has precedence. Throws `ConfigError` with the variables whose value is no address of a proxy, or no list.
 */
export function readProxyEnvironment(environment: Environment = process.env): FindProxy {
  const problems: string[] = [];
  const find = (names: readonly string[]): NamedProxy | null => {
    const name = names.find((candidate) => readVariable(environment, candidate) !== undefined);
    if (name === undefined) return null;
    const url = readProxyUrl(readVariable(environment, name) ?? '');
    if (url instanceof URL) return { url, name };
    problems.push(`${name}: ${url}`);
    return null;
  };
  const proxies = new Map(Object.entries(variables).map(([scheme, names]) => [scheme, find(names)]));
  const exceptions = readVariable(environment, 'no_proxy') ?? readVariable(environment, 'NO_PROXY') ?? '';
  if (problems.length > 0) throw new ConfigError('the environment', [...new Set(problems)]);
  const isException = readProxyExceptions(exceptions);
  return (url) =>
    isLocalHost(url.hostname) || isException(url) ? null : (proxies.get(url.protocol) ?? null);
}

/** The proxy of an upstream: its own setting has precedence over the environment. */
export function proxyOf(
  { url, proxy }: { readonly url: URL; readonly proxy?: URL | typeof noProxy | undefined },
  setting: string,
  find: FindProxy,
): NamedProxy | null {
  if (proxy === undefined) return find(url);
  return proxy === noProxy ? null : { url: proxy, name: setting };
}

/** Whether a host is this machine, which no proxy can reach. */
export function isLocalHost(hostname: string): boolean {
  return /^(.+\.)?localhost\.?$/.test(hostname) || isLoopback(bare(hostname));
}

/**
 * Reads a list of hosts without a proxy by the rules of curl: `*` for all, a name for itself and all names that end with
 * `.` and it, an address, or a network such as `10.0.0.0/8`; each with a port, if it is only meant for that.
 */
export function readProxyExceptions(list: string): (url: URL) => boolean {
  const entries = list
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .map(readException);
  return (url) => entries.some((matches) => matches(url));
}

function readException(entry: string): (url: URL) => boolean {
  if (entry === '*') return () => true;
  const whole = readNetwork(entry);
  const [, written = '', port] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? [];
  const host = bare(written.toLowerCase());
  const network = whole ?? readNetwork(host);
  const isPort = (url: URL): boolean => whole !== null || port === undefined || port === portOf(url);
  if (network !== null)
    return (url) => {
      const address = canonicalAddress(bare(url.hostname));
      return address !== null && isPort(url) && network(address);
    };
  const name = withoutLastDot(host.replace(/^\*?\./, ''));
  return (url) => {
    const hostname = withoutLastDot(url.hostname);
    return name !== '' && isPort(url) && (hostname === name || hostname.endsWith(`.${name}`));
  };
}

/** The test of an address or a network; `null` for a name. */
function readNetwork(text: string): NetworkTest | null {
  const network = canonicalNetwork(text);
  return network === null ? null : compileNetworks([network]);
}

function portOf({ protocol, port }: URL): string {
  if (port !== '') return port;
  return protocol === 'https:' ? '443' : '80';
}

function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}

function withoutLastDot(hostname: string): string {
  return hostname.replace(/\.$/, '');
}
