import { isIP } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  canonicalAddress,
  canonicalNetwork,
  compileNetworks,
  enclosingNetwork,
} from '../../src/shared/networks.ts';
import { propertyRun } from '../support/property-run.ts';

describe('the one form of an address', () => {
  test.each([
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['::FFFF:0A00:0001', '10.0.0.1'],
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::1', '::1'],
    ['::FFFF:0:10.0.0.1', '::ffff:0:a00:1'],
    ['::ffff:1:2:3', '::ffff:1:2:3'],
  ])('of %s is %s', (text, one) => {
    expect(canonicalAddress(text)).toBe(one);
  });

  test.each(['', 'unknown', '010.0.0.1', '10.0.0', '0x7f.1', '10.0.0.1 ', '10.0.0.1:80', '[::1]', '1::2::3'])(
    'is not that of %j, which is no address',
    (text) => {
      expect(canonicalAddress(text)).toBeNull();
    },
  );
});

describe('the one form of a network', () => {
  test.each([
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['10.0.0.1/32', '10.0.0.1'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['2001:DB8::/32', '2001:db8::/32'],
    ['::1/128', '::1'],
    ['::ffff:10.0.0.0/104', '10.0.0.0/8'],
    ['::ffff:10.0.0.1/128', '10.0.0.1'],
    ['::ffff:0:0:0/96', '::ffff:0:0:0/96'],
  ])('of %s is %s', (text, one) => {
    expect(canonicalNetwork(text)).toBe(one);
  });

  test.each(['/8', '10.0.0.0/', '10.0.0.0/33', '10.0.0.0/08', '10.0.0.0/-1', '10.0.0.0/255.0.0.0', '10/8'])(
    'is not that of %j',
    (text) => {
      expect(canonicalNetwork(text)).toBeNull();
    },
  );

  // 80 bits of a mapped address are those of no IPv4 network.
  test.each(['::/129', '::ffff:10.0.0.0/80', 'fe80::%eth0/64', '::/0/0'])('is not that of %j', (text) => {
    expect(canonicalNetwork(text)).toBeNull();
  });

  test.each([
    ['10.1.2.3/8', '10.0.0.0/8'],
    ['10.1.2.3/31', '10.1.2.2/31'],
    ['10.1.2.3', '10.1.2.3'],
    ['10.1.2.3/0', '0.0.0.0/0'],
    ['2001:db8:1:2::5/33', '2001:db8::/33'],
    ['2001:db8:ffff::/33', '2001:db8:8000::/33'],
  ])('that has %s is %s', (text, whole) => {
    expect(enclosingNetwork(text)).toBe(whole);
  });
});

/** The bits of an address, by arithmetic of its own: the model of the tests below. */
function bitsOf(address: string): string {
  if (isIP(address) === 4)
    return address
      .split('.')
      .map((part) => Number(part).toString(2).padStart(8, '0'))
      .join('');
  const [front = '', back] = address.split('::');
  const groups = (side: string): readonly string[] => (side === '' ? [] : side.split(':'));
  const [head, tail] = [groups(front), groups(back ?? '')];
  const all = [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
  return all.map((group) => Number.parseInt(group, 16).toString(2).padStart(16, '0')).join('');
}

const group = fc.constantFrom(0, 1, 0x2001, 0xdb8, 0x8000, 0xffff);
const ipv6 = fc
  .array(group, { minLength: 8, maxLength: 8 })
  .map((groups) => groups.map((part) => part.toString(16)).join(':'))
  .map((text) => canonicalAddress(text) ?? '')
  // One that holds an IPv4 address in dots has no bits in the model.
  .filter((text) => isIP(text) === 6 && !text.includes('.'));
const ipv4 = fc
  .array(fc.constantFrom(0, 1, 10, 127, 128, 255), { minLength: 4, maxLength: 4 })
  .map((parts) => parts.join('.'));
const address = fc.oneof(ipv4, ipv6);

describe('a list of networks', () => {
  test('has an address exactly if its bits begin with those of a network of its own family', () => {
    const networks = fc
      .tuple(address, fc.nat(128))
      .map(([text, bits]) => enclosingNetwork(`${text}/${Math.min(bits, isIP(text) === 4 ? 32 : 128)}`));
    fc.assert(
      fc.property(fc.array(networks, { maxLength: 12 }), address, (list, one) => {
        const expected = list.some((network) => {
          const [base = '', prefix = '128'] = network.split('/');
          return isIP(base) === isIP(one) && bitsOf(one).startsWith(bitsOf(base).slice(0, Number(prefix)));
        });
        expect(compileNetworks(list)(one)).toBe(expected);
      }),
      propertyRun(),
    );
  });

  test('may have an IPv6 address that begins as mapped ones do, and is none', () => {
    const isIn = compileNetworks([canonicalNetwork('::ffff:0:0:0/96') ?? '']);
    expect(
      ['::ffff:0:10.0.0.1', '::ffff:10.0.0.1'].map((text) => isIn(canonicalAddress(text) ?? '')),
    ).toEqual([true, false]);
  });

  test('has no IPv4 address by a network of IPv6, and no unknown address by any', () => {
    expect(compileNetworks(['::/0'])('10.0.0.1')).toBe(false);
    expect(compileNetworks(['0.0.0.0/0', '::/0'])('')).toBe(false);
    expect(compileNetworks(['0.0.0.0/0', '::/0'])('10.0.0.1')).toBe(true);
  });
});
