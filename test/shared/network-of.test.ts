import { expect, test } from 'vitest';
import { networkOf } from '../../src/shared/ip-address.ts';

test.each([
  ['127.0.0.2', '127.0.0.2'],
  ['::1', '0:0:0:0::/64'],
  ['10.0.0.1', '10.0.0.1'],
  ['::ffff:10.0.0.1', '10.0.0.1'],
  ['2001:db8:1:2::3', '2001:db8:1:2::/64'],
  ['2001:db8:1:2:ffff::9', '2001:db8:1:2::/64'],
  ['2001:db8:1:3::3', '2001:db8:1:3::/64'],
])('%s counts as one client with all of %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});
