import { isIP } from 'node:net';

/** The eight 16-bit groups of an IPv6 address, without its zone; `null` for anything else. */
export function readIpv6(text: string): readonly number[] | null {
  if (isIP(text) !== 6) return null;
  const [address = ''] = text.split('%');
  const [front = '', back] = address.split('::');
  const head = readGroups(front);
  if (back === undefined) return head;
  const tail = readGroups(back);
  return [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}

/** The groups on one side of `::`; a dotted IPv4 address at the end counts as two. */
function readGroups(side: string): readonly number[] {
  if (side === '') return [];
  return side.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
    return [a * 256 + b, c * 256 + d];
  });
}

/** The formats of an IPv4 address inside an IPv6 one: the prefix in groups, and the place of the IPv4 address. */
const wrappings: readonly {
  readonly prefix: readonly number[];
  readonly read: (groups: readonly number[]) => readonly string[];
}[] = [
  // IPv4-compatible, IPv4-mapped, and stateless translation (RFC 4291, RFC 2765).
  { prefix: [0, 0, 0, 0, 0, 0], read: lastTwo },
  { prefix: [0, 0, 0, 0, 0, 0xffff], read: lastTwo },
  { prefix: [0, 0, 0, 0, 0xffff, 0], read: lastTwo },
  // NAT64: the well-known prefix, and the local-use one, which allows several prefix lengths (RFC 6052, RFC 8215).
  { prefix: [0x64, 0xff9b, 0, 0, 0, 0], read: lastTwo },
  { prefix: [0x64, 0xff9b, 1], read: (groups) => [...lastTwo(groups), ...shorterPrefixes(groups)] },
  // 6to4 (RFC 3056).
  { prefix: [0x2002], read: ([, high = 0, low = 0]) => [dotted(high, low)] },
  // Teredo: its server, and the client's own address with its bits inverted (RFC 4380).
  {
    prefix: [0x2001, 0],
    read: (groups) => [
      dotted(groups[2] ?? 0, groups[3] ?? 0),
      dotted((groups[6] ?? 0) ^ 0xffff, (groups[7] ?? 0) ^ 0xffff),
    ],
  },
];

/** Every IPv4 address that an IPv6 address may contain, in dotted form. */
export function embeddedIpv4(groups: readonly number[]): readonly string[] {
  return wrappings
    .filter(({ prefix }) => prefix.every((group, index) => groups[index] === group))
    .flatMap(({ read }) => read(groups));
}

function lastTwo(groups: readonly number[]): readonly string[] {
  return [dotted(groups[6] ?? 0, groups[7] ?? 0)];
}

/** Under prefixes of 48, 56 and 64 bits the address is split around the octet at bit 64, which is always zero. */
function shorterPrefixes([
  ,
  ,
  ,
  third = 0,
  fourth = 0,
  fifth = 0,
  sixth = 0,
]: readonly number[]): readonly string[] {
  return [
    dotted(third, straddle(fourth, fifth)),
    dotted(((third & 0xff) << 8) | (fourth & 0xff), fifth),
    dotted(straddle(fourth, fifth), straddle(fifth, sixth)),
  ];
}

/** The last octet of one group and the first octet of the next, as a group. */
function straddle(first: number, second: number): number {
  return ((first & 0xff) << 8) | (second >> 8);
}

function dotted(high: number, low: number): string {
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}

/** Whether a socket's address is a loopback address. */
export function isLoopback(address: string): boolean {
  return /^(::ffff:)?127\.|^::1$/.test(address);
}

/** The unit of limits by address: an IPv4 address, or an IPv6 /64, since one machine usually has all of it. */
export function networkOf(address: string): string {
  const groups = readIpv6(address);
  if (groups === null) return address;
  if (address.toLowerCase().startsWith('::ffff:')) return lastTwo(groups).join();
  const network = groups.slice(0, 4).map((group) => group.toString(16));
  return `${network.join(':')}::/64`;
}
