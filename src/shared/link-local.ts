import { BlockList, isIP } from 'node:net';

/**
 * Addresses that only the machine itself should talk to: link-local ones, under which clouds offer credentials to
 * whoever can make a machine ask for them, and those that some clouds use instead.
 */
const linkLocal = new BlockList();
linkLocal.addSubnet('169.254.0.0', 16, 'ipv4');
linkLocal.addSubnet('fe80::', 10, 'ipv6');
/** The same, wrapped into IPv6 by NAT64 and by an older habit. */
linkLocal.addSubnet('64:ff9b::a9fe:0', 112, 'ipv6');
linkLocal.addSubnet('::a9fe:0', 112, 'ipv6');
linkLocal.addAddress('fd00:ec2::254', 'ipv6');
linkLocal.addAddress('100.100.100.200', 'ipv4');

/** Names under which clouds offer the same. */
const metadataNames = new Set(['metadata.google.internal', 'metadata.goog', 'instance-data']);

/** Whether an address, or a name, as it stands in a URL, is a machine's own metadata service or beside it. */
export function isLinkLocal(host: string): boolean {
  const bare = host
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
  const family = isIP(bare);
  if (family === 0) return metadataNames.has(bare);
  return linkLocal.check(bare, family === 4 ? 'ipv4' : 'ipv6');
}
