import type { LookupFunction } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createNetwork } from '../../src/transport/network.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';

let upstream: ScriptedUpstream;
beforeAll(async () => void (upstream = await startUpstream()));
afterAll(() => upstream.close());

/** A resolver with one answer. */
const resolvingTo =
  (address: string): LookupFunction =>
  (_hostname, _options, callback) =>
    callback(null, [{ address, family: 4 }]);

describe('the network of an upstream', () => {
  test('has the addresses of a host, and opens a connection to it', async () => {
    const { host, port } = new URL(upstream.url);
    const network = createNetwork({
      connectMs: 5_000,
      allowLinkLocal: false,
      lookup: resolvingTo('127.0.0.1'),
    });
    const named = new URL(`http://provider.test:${port}/v1`);
    expect(await network.resolve(named)).toEqual(['127.0.0.1']);
    expect(await network.connect(named)).toBe(host);
  });

  test('refuses a host that is resolved to a link-local address, as calls do', async () => {
    const lookup = resolvingTo('169.254.169.254');
    const network = createNetwork({ connectMs: 5_000, allowLinkLocal: false, lookup });
    const url = new URL('http://provider.test/v1');
    const refused = { kind: 'fault', fault: 'unreachable', code: 'LINK_LOCAL_REFUSED' };
    expect(await network.resolve(url)).toMatchObject(refused);
    expect(await network.connect(url)).toMatchObject(refused);
    const allowing = createNetwork({ connectMs: 5_000, allowLinkLocal: true, lookup });
    expect(await allowing.resolve(url)).toEqual(['169.254.169.254']);
  });

  test('connects to an IPv6 address without its brackets', async () => {
    const network = createNetwork({ connectMs: 5_000, allowLinkLocal: false });
    expect(await network.resolve(new URL('http://[::1]:1/v1'))).toEqual(['::1']);
  });
});
