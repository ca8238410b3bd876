import { BlockList, SocketAddress, isIP } from 'node:net';
import { readIpv6 } from './ip-address.ts';

/** The prefix of an IPv4 address that is written as an IPv6 one, in text and in bits. */
const mappedPrefix = '::ffff:';
const mappedBits = 96;

/**
 * An IP address in the one form in which it is compared, logged and shown: IPv4 in dots, also where a socket of both
 * families has it as `::ffff:10.0.0.1`, and IPv6 in lower case, as short as it can be and without a zone. `null` for
 * anything else.
 */
export function canonicalAddress(text: string): string | null {
  const family = isIP(text);
  if (family === 4) return text;
  if (family === 0) return null;
  const { address } = new SocketAddress({ address: text, family: 'ipv6' });
  if (!address.startsWith(mappedPrefix)) return address;
  // `::ffff:0:10.0.0.1` begins in the same way and is no mapped address: without its prefix it would be none at all.
  const inside = address.slice(mappedPrefix.length);
  return isIP(inside) === 4 ? inside : address;
}

/** A network, or a single address if its prefix has all bits. */
interface Network {
  readonly address: string;
  /** In bits. */
  readonly prefix: number;
}

/**
 * Reads an address or a network in CIDR notation into its one form, such as `10.0.0.0/8` or `2001:db8::1`; `null` for
 * anything else. Bits behind the prefix are kept.
 */
export function canonicalNetwork(text: string): string | null {
  const [given = '', bits, ...more] = text.split('/');
  const address = given.includes('%') ? null : canonicalAddress(given);
  if (address === null || more.length > 0) return null;
  if (bits === undefined) return address;
  if (!/^(0|[1-9]\d{0,2})$/.test(bits)) return null;
  const isMapped = isIP(given) === 6 && isIP(address) === 4;
  const prefix = Number(bits) - (isMapped ? mappedBits : 0);
  const width = widthOf(address);
  if (prefix < 0 || prefix > width) return null;
  return prefix === width ? address : `${address}/${prefix}`;
}

/** The network that the address of a network in its one form belongs to: `10.0.0.0/8` for `10.1.2.3/8`. */
export function enclosingNetwork(network: string): string {
  const { address, prefix } = readNetwork(network);
  if (prefix === widthOf(address)) return network;
  const groups = readIpv6(address);
  const parts = groups ?? address.split('.').map(Number);
  const bits = groups === null ? 8 : 16;
  const kept = parts.map((part, index) => {
    const inside = Math.min(bits, Math.max(0, prefix - index * bits));
    return part & ~((1 << (bits - inside)) - 1);
  });
  const text = groups === null ? kept.join('.') : kept.map((group) => group.toString(16)).join(':');
  return `${canonicalAddress(text)}/${prefix}`;
}

export type NetworkTest = (address: string) => boolean;

/**
 * Compiles networks in their one form into a test of addresses in theirs. IPv4 and IPv6 are apart: `::/0` has no IPv4
 * address, which would pass for its mapped form otherwise.
 */
export function compileNetworks(networks: readonly string[]): NetworkTest {
  const [ipv4, ipv6] = [new BlockList(), new BlockList()];
  for (const { address, prefix } of networks.map(readNetwork))
    if (address.includes(':')) ipv6.addSubnet(address, prefix, 'ipv6');
    else ipv4.addSubnet(address, prefix, 'ipv4');
  return (address) => (address.includes(':') ? ipv6.check(address, 'ipv6') : ipv4.check(address, 'ipv4'));
}

const compiled = new WeakMap<readonly string[], NetworkTest>();

/** Whether an address is in one of the networks, all in their one form. Each list is compiled once. */
export function isInNetworks(networks: readonly string[], address: string): boolean {
  let isIn = compiled.get(networks);
  if (isIn === undefined) compiled.set(networks, (isIn = compileNetworks(networks)));
  return isIn(address);
}

function readNetwork(network: string): Network {
  const [address = '', bits] = network.split('/');
  return { address, prefix: bits === undefined ? widthOf(address) : Number(bits) };
}

function widthOf(address: string): number {
  return address.includes(':') ? 128 : 32;
}
