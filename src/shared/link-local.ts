import { BlockList, isIP } from 'node:net';
import { embeddedIpv4, readIpv6 } from './ip-address.ts';

/**
 * Addresses that only the machine itself should talk to: link-local ones, under which clouds offer credentials to
 * whatever can make a machine ask for them, and those that some clouds use instead.
 */
const refused = new BlockList();
refused.addSubnet('169.254.0.0', 16, 'ipv4');
refused.addSubnet('fe80::', 10, 'ipv6');
/** Alibaba Cloud, Azure, Oracle Cloud. */
refused.addAddress('100.100.100.200', 'ipv4');
refused.addAddress('168.63.129.16', 'ipv4');
refused.addAddress('192.0.0.192', 'ipv4');
/** Amazon EC2 and EKS, Google Cloud. */
refused.addAddress('fd00:ec2::254', 'ipv6');
refused.addAddress('fd00:ec2::23', 'ipv6');
refused.addAddress('fd20:ce::254', 'ipv6');

/** Names under which clouds offer the same. */
const metadataNames =
  /^(metadata\.google\.internal|metadata\.goog|metadata\.azure\.internal|metadata\.tencentyun\.com|instance-data(\.([a-z0-9-]+\.)*internal)?)$/;

/**
 * Whether an address, or a name, as it stands in a URL, is a machine's own metadata service or beside it. An IPv4 address
 * inside an IPv6 one counts as itself: a translator on the way would lead there.
 */
export function isLinkLocal(host: string): boolean {
  const bare = host
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
  if (isIP(bare) === 0) return metadataNames.test(bare);
  if (isIP(bare) === 4) return refused.check(bare, 'ipv4');
  const groups = readIpv6(bare) ?? [];
  return refused.check(bare, 'ipv6') || embeddedIpv4(groups).some((inner) => refused.check(inner, 'ipv4'));
}
