import { defaultHost } from '../config/default-addresses.ts';

/** An address that a person has given, and what is said where it can't be used. */
interface GivenAddress {
  /** The variable or the option that has it. */
  readonly name: string;
  /** The default port of what is there, for an example. */
  readonly port: number;
  /** What identifies the caller there instead of a user and a password. */
  readonly secret: 'key' | 'token';
}

/**
 * The address, without slashes at its end. Throws if it does not begin with `http://` or `https://`, or has a user or a
 * password, which messages about the address would print. It is not quoted for the same reason.
 */
export function checkedAddress(text: string, { name, port, secret }: GivenAddress): string {
  const { protocol, username, password } = URL.parse(text) ?? {};
  if (`${username ?? ''}${password ?? ''}` !== '')
    throw new Error(`${name}: expected no user and no password in the address: the ${secret} says who calls`);
  if (protocol === 'http:' || protocol === 'https:') return text.replace(/\/+$/, '');
  throw new Error(
    `${name}: expected http:// or https:// before the host, as in http://${defaultHost}:${port}`,
  );
}

/** The address at which this machine reaches a listener: the loopback one for a listener on all interfaces. */
export function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}

/** The address at which this machine reaches a listener of a host and a port. */
export function addressOf(host: string, port: number | string): string {
  return reachable(`http://${host.includes(':') ? `[${host}]` : host}:${port}`);
}
