import { describe, expect, test } from 'vitest';
import { embeddedIpv4, readIpv6 } from '../../src/shared/ip-address.ts';
import { isLinkLocal } from '../../src/shared/link-local.ts';

describe('a link-local or metadata address', () => {
  test.each([
    ['link-local IPv4', '169.254.169.254'],
    ['Alibaba Cloud', '100.100.100.200'],
    ['Azure', '168.63.129.16'],
    ['Oracle Cloud', '192.0.0.192'],
    ['link-local IPv6', '[fe80::1]'],
    ['link-local IPv6 with a zone', 'fe80::1%eth0'],
    ['EC2', '[fd00:ec2::254]'],
    ['EKS', '[fd00:ec2::23]'],
    ['Google Cloud', '[fd20:ce::254]'],
    ['IPv4-mapped', '[::ffff:169.254.169.254]'],
    ['IPv4-mapped, in hexadecimal', '[::ffff:a9fe:a9fe]'],
    ['IPv4-compatible', '[::a9fe:a9fe]'],
    ['stateless translation', '[::ffff:0:a9fe:a9fe]'],
    ['NAT64', '[64:ff9b::a9fe:a9fe]'],
    ['local NAT64, 96 bits', '[64:ff9b:1::a9fe:a9fe]'],
    ['local NAT64, 48 bits', '[64:ff9b:1:a9fe:a9:fe00::]'],
    ['local NAT64, 56 bits', '[64:ff9b:1:a9:fe:a9fe::]'],
    ['local NAT64, 64 bits', '[64:ff9b:1:0:a9:fea9:fe00:0]'],
    ['6to4', '[2002:a9fe:a9fe::]'],
    ['6to4 of another metadata address', '[2002:a83f:8110::1]'],
    ['Teredo, its client', '[2001:0:4136:e378:8000:63bf:5601:5601]'],
    ['Teredo, its server', '[2001:0:a9fe:a9fe::]'],
    ['a metadata name', 'metadata.google.internal'],
    ['a metadata name with a dot at its end', 'Metadata.Google.Internal.'],
    ['EC2 by name', 'instance-data'],
    ['EC2 by its whole name', 'instance-data.ec2.internal'],
    ['EC2 by its regional name', 'instance-data.eu-west-1.compute.internal'],
  ])('is detected: %s', (_, host) => {
    expect(isLinkLocal(host)).toBe(true);
  });

  test.each([
    '127.0.0.1',
    '10.0.0.1',
    '169.253.255.255',
    '168.63.129.17',
    '[::1]',
    '[::]',
    '[fec0::1]',
    '[::ffff:10.0.0.1]',
    '[64:ff9b::808:808]',
    '[2002:808:808::1]',
    '[2001:db8:a9fe:a9fe::1]',
    '[2606:4700::a9fe:a9fe]',
    'api.openai.com',
    'metadata.example.com',
    'instance-data.example.com',
    'my-instance-data',
  ])('is not detected in %s', (host) => {
    expect(isLinkLocal(host)).toBe(false);
  });
});

describe('an IPv6 address', () => {
  test.each([
    ['::', [0, 0, 0, 0, 0, 0, 0, 0]],
    ['1::8', [1, 0, 0, 0, 0, 0, 0, 8]],
    ['1:2:3:4:5:6:7:8', [1, 2, 3, 4, 5, 6, 7, 8]],
    ['::ffff:1.2.3.4', [0, 0, 0, 0, 0, 0xffff, 0x0102, 0x0304]],
    ['fe80::a%eth0', [0xfe80, 0, 0, 0, 0, 0, 0, 10]],
  ])('%s is parsed into its groups', (text, groups) => {
    expect(readIpv6(text)).toEqual(groups);
  });

  test('is not parsed from anything else, and embeds no IPv4 address outside the known ranges', () => {
    expect([readIpv6('1.2.3.4'), readIpv6('example.com'), readIpv6('1::2::3')]).toEqual([null, null, null]);
    expect(embeddedIpv4(readIpv6('2a00::1') ?? [])).toEqual([]);
  });
});
