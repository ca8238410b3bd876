import { BlockList, isIP, isIPv4 } from 'node:net';
import { embeddedIpv4, readIpv6 } from './ip-address.ts';

/**
 * Link-local addresses, and others that clouds use for their metadata service: it gives a machine's credentials to any
 * request that comes from the machine.
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

/** Host names of metadata services. */
const metadataNames =
  /^(metadata\.google\.internal|metadata\.goog|metadata\.azure\.internal|metadata\.tencentyun\.com|instance-data(\.([a-z0-9-]+\.)*internal)?)$/;

/**
 * Whether a host, as it stands in a URL, is link-local or a metadata service. An IPv4 address inside an IPv6 one counts
 * too: a translator on the way would connect to it.
 */
export function isLinkLocal(host: string): boolean {
  const bare = host
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
  if (isIPv4(bare)) return refused.check(bare, 'ipv4');
  // Names have no colon: Node's pattern of IPv6 addresses takes 6 ms to compile, at each start.
  if (!bare.includes(':') || isIP(bare) === 0) return metadataNames.test(bare);
  const groups = readIpv6(bare) ?? [];
  return refused.check(bare, 'ipv6') || embeddedIpv4(groups).some((inner) => refused.check(inner, 'ipv4'));
}
