import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readAnswer } from '../support/client-answer.ts';
import { debianProxies, isInstalled, startDebianProxy } from '../support/debian-proxies.ts';
import { examineUrl } from '../support/examine.ts';
import {
  proxyAddress,
  proxyUser,
  startOutboundScene,
  upstreamKinds,
  wholeAnswer,
} from '../support/outbound-scene.ts';
import type { OutboundScene } from '../support/outbound-scene.ts';

/** tinyproxy reads no password with a colon or an @ in its config. */
const password = 'a-plain-password';

let scene: OutboundScene;
beforeEach(async () => {
  scene = await startOutboundScene();
});
afterEach(() => scene.close());

describe.each(Object.keys(debianProxies))('%s (needs the package of Debian)', (name) => {
  test.skipIf(!isInstalled(name)).each(upstreamKinds)(
    'leads to an upstream %s: whole and streamed answers, a passthrough, the doctor, and a wrong password',
    async (kind) => {
      const proxy = await startDebianProxy(name, proxyUser, password);
      try {
        const address = `http://${proxyUser}:${password}@127.0.0.1:${proxy.port}`;
        const local = scene.reach(kind);
        const gateway = await scene.serve({ ...local, proxy: address }, { discover: true });
        for (const protocol of ['chat', 'responses'] as const)
          for (const stream of [false, true])
            expect(await readAnswer(gateway, protocol, stream, 'x', 'tiny')).toEqual(wholeAnswer);
        const passed = await gateway.post('/tokenize', { content: 'x' });
        expect([passed.status, await passed.text()]).toEqual([200, '{"tokens":[1]}']);
        expect(scene.upstream.seen.length + scene.secure.seen.length).toBe(6);
        const { checks } = await examineUrl(local.url, { upstream: { ...local, proxy: address } });
        expect(checks.map(({ id, status }) => `${id} ${status}`)).toContain('chat.stream ok');

        const refused = await scene.serve({ ...local, proxy: proxyAddress(proxy.port) });
        const { code } = await readAnswer(refused, 'chat', true);
        // tinyproxy answers a wrong password like a server, with status 401, and only a missing one with 407.
        const isLikeServer = name === 'tinyproxy' && kind === 'without TLS';
        expect(code).toBe(isLikeServer ? 'upstream_auth' : 'upstream_unavailable');
        const { port } = proxy;
        expect(scene.log).toContain(
          isLikeServer
            ? `The proxy 127.0.0.1:${port} (upstreams.local.proxy) may have answered in place of the server.`
            : `the proxy 127.0.0.1:${port} refused (status 40`,
        );
      } finally {
        await proxy.close();
      }
    },
    30_000,
  );
});
