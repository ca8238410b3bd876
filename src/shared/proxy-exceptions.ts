import { isLoopback } from './ip-address.ts';
import { canonicalAddress, canonicalNetwork, compileNetworks } from './networks.ts';
import type { NetworkTest } from './networks.ts';

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
