import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { readClientAddresses } from '../../src/http/heads/client-addresses.ts';

/** A request over a connection from an address, with what proxies report of it. */
function requestFrom(remoteAddress: string | undefined, forwardedFor?: string): IncomingMessage {
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress });
  const request = new IncomingMessage(socket);
  if (forwardedFor !== undefined) request.headers['x-forwarded-for'] = forwardedFor;
  return request;
}

const proxies = ['127.0.0.0/8', '10.0.0.0/8', '2001:db8::/32'];

describe('the address of a client', () => {
  test.each([
    ['one proxy', '10.0.0.1', '203.0.113.9', '203.0.113.9'],
    ['a proxy on a socket of both families', '::ffff:10.0.0.1', '203.0.113.9', '203.0.113.9'],
    ['two proxies', '10.0.0.1', '203.0.113.9, 10.0.0.2', '203.0.113.9'],
    ['an entry that the client wrote itself', '10.0.0.1', '1.1.1.1, 203.0.113.9, 10.0.0.2', '203.0.113.9'],
    ['a client that claims to be a proxy', '10.0.0.1', '10.9.9.9, 203.0.113.9', '203.0.113.9'],
    ['a client inside the network of the proxies', '10.0.0.1', '10.0.0.7', '10.0.0.7'],
    ['a port behind the address', '10.0.0.1', '203.0.113.9:51234', '203.0.113.9'],
    ['IPv6 in brackets with a port', '10.0.0.1', '[2001:DB9:0::5]:443', '2001:db9::5'],
    ['IPv6 in brackets', '10.0.0.1', '[2001:db9::5]', '2001:db9::5'],
    ['a mapped IPv4 address', '10.0.0.1', '::ffff:203.0.113.9', '203.0.113.9'],
    ['no blanks', '10.0.0.1', '1.1.1.1,203.0.113.9,10.0.0.2', '203.0.113.9'],
    ['garbage behind a proxy', '10.0.0.1', '203.0.113.9, unknown, 10.0.0.2', '10.0.0.2'],
    ['garbage alone', '10.0.0.1', '_hidden', '10.0.0.1'],
    ['a bad IPv4 address with a port', '10.0.0.1', '1.2.3.4.5:80', '10.0.0.1'],
    ['IPv4 in brackets', '10.0.0.1', '[203.0.113.9]', '10.0.0.1'],
    ['an empty header', '10.0.0.1', '', '10.0.0.1'],
    ['commas', '10.0.0.1', ',,', '10.0.0.1'],
    ['a comma in front', '10.0.0.1', ',10.0.0.2', '10.0.0.2'],
    ['a stranger', '203.0.113.9', '10.0.0.5', '203.0.113.9'],
  ])('behind %s: %s reports %j, so it is %s', (_what, peer, reported, expected) => {
    expect(readClientAddresses(proxies, false).of(requestFrom(peer, reported))).toBe(expected);
  });

  test('is that of the connection without a report, and where no proxy is trusted', () => {
    expect(readClientAddresses(proxies, false).of(requestFrom('::ffff:10.0.0.1'))).toBe('10.0.0.1');
    expect(readClientAddresses([], false).of(requestFrom('127.0.0.1', '203.0.113.9'))).toBe('127.0.0.1');
  });

  test('is not known where a connection has none, whatever it reports: it passes for no local one', () => {
    const addresses = readClientAddresses(['127.0.0.0/8', '0.0.0.0/1', '128.0.0.0/1'], false);
    expect(addresses.of(requestFrom(undefined, '203.0.113.9'))).toBe('');
  });

  test('is the last entry read of a list without an end', () => {
    const endless = Array.from({ length: 2_000 }, (_, index) => `10.1.${index >> 8}.${index & 255}`);
    const found = readClientAddresses(proxies, false).of(requestFrom('10.0.0.1', endless.join(', ')));
    expect(found).toBe(endless.at(-32));
  });
});
