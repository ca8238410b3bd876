import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { makeAuthority } from '../support/certificates.ts';
import { readAnswer, readStream } from '../support/client-answer.ts';
import { eventually } from '../support/eventually.ts';
import { examineUrl } from '../support/examine.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { startHttpProxy } from '../support/http-proxy.ts';
import type { HttpProxy } from '../support/http-proxy.ts';
import {
  proxyAddress,
  proxyPassword,
  startOutboundScene,
  upstreamKinds,
  wholeAnswer,
} from '../support/outbound-scene.ts';
import type { OutboundScene, UpstreamInput } from '../support/outbound-scene.ts';
import { chatFrames, sendStream } from '../support/scripted-upstream.ts';
import type { TestGateway } from '../support/test-gateway.ts';

let proxy: HttpProxy;
let scene: OutboundScene;
beforeEach(async () => {
  scene = await startOutboundScene();
  proxy = await startHttpProxy();
});
afterEach(async () => {
  await scene.close();
  await proxy.close();
  vi.unstubAllEnvs();
});

const password = proxyPassword;
/** What both upstreams were asked. */
const seen = () => [...scene.upstream.seen, ...scene.secure.seen];
const forms = (['chat', 'responses'] as const).flatMap((protocol) =>
  [false, true].map((stream) => [protocol, stream] as const),
);
const lastRecord = async (gateway: TestGateway) =>
  (await askAdmin(gateway, 'GET', '/records?limit=1')).body.data[0];

describe.each(upstreamKinds)('an upstream %s', (kind) => {
  test('is reached through its proxy by every kind of call, and does not see its password', async () => {
    proxy.credentials = `me:${password}`;
    const gateway = await scene.serve(
      { ...scene.reach(kind), proxy: proxyAddress(proxy.port) },
      { discover: true },
    );
    for (const [protocol, stream] of forms)
      expect(await readAnswer(gateway, protocol, stream, 'x', 'tiny')).toEqual(wholeAnswer);
    const passed = await gateway.post('/tokenize', { content: 'x' });
    expect([passed.status, await passed.text()]).toEqual([200, '{"tokens":[1]}']);

    const { host } = new URL(scene.reach(kind).url);
    // The list of models, four answers, a passthrough; a tunnel is kept for further calls, but not for a passthrough.
    const asked =
      kind === 'with TLS'
        ? [`CONNECT ${host}`]
        : [
            `GET http://${host}/v1/models`,
            `POST http://${host}/v1/chat/completions`,
            `POST http://${host}/tokenize`,
          ];
    expect([...new Set(proxy.asked)]).toEqual(asked);
    expect(seen()).toHaveLength(6);
    for (const { headers } of seen()) {
      expect(headers['proxy-authorization']).toBeUndefined();
      expect(headers.host).toBe(host);
      expect(headers.authorization).toBe('Bearer sk-upstream-secret');
    }
    expect(scene.secure.seen.map((each) => each.client)).toEqual(scene.secure.seen.map(() => 'gateway'));
  });

  test('is not reached through a proxy that refuses the password, which the log names by its setting', async () => {
    proxy.credentials = 'me:another';
    const gateway = await scene.serve({ ...scene.reach(kind), proxy: proxyAddress(proxy.port) });
    for (const [protocol, stream] of forms)
      expect(await readAnswer(gateway, protocol, stream)).toMatchObject({ code: 'upstream_unavailable' });
    const passed = await gateway.post('/tokenize', {});
    expect([passed.status, await passed.text()]).toEqual([
      502,
      expect.stringContaining('upstream_unavailable'),
    ]);
    expect(scene.log).toContain(
      `the proxy 127.0.0.1:${proxy.port} refused (status 407). Correct the user and password in upstreams.local.proxy.`,
    );
    expect(scene.log).not.toContain(password);
    expect(scene.log).not.toContain(encodeURIComponent(password));
    expect(await lastRecord(gateway)).toMatchObject({ outcome: 'upstream_failed' });
    expect(seen()).toEqual([]);
  });

  test('is not reached through a proxy that is down or silent, and the next route serves the request', async () => {
    const other = { url: scene.upstream.url };
    const routes = ['local', 'other'].map((name) => ({ upstream: name, model: 'tiny' }));
    const local = { ...scene.reach(kind), proxy: proxy.url, timeouts: { connect: '150ms', firstByte: '1s' } };
    const gateway = await scene.serve(local, { upstreams: { local, other }, routes });
    proxy.isSilent = true;
    expect(await readAnswer(gateway, 'chat', true)).toEqual(wholeAnswer);
    await proxy.close();
    expect(await readAnswer(gateway, 'responses', false)).toEqual(wholeAnswer);
    expect(scene.log).toContain(`the proxy 127.0.0.1:${proxy.port} can't be reached: connection refused.`);
    expect(scene.log).toContain('Start the proxy, or correct its address in upstreams.local.proxy.');
    proxy = await startHttpProxy();
  });

  test('whose proxy cuts the connection within an answer has broken off, and is not asked again', async () => {
    scene.play = (response) => void sendStream(response, chatFrames(['one ']).slice(0, 2));
    const gateway = await scene.serve({ ...scene.reach(kind), proxy: proxy.url });
    for (const protocol of ['chat', 'responses'] as const) {
      const before = seen().length;
      const asked = protocol === 'chat' ? { messages: [{ role: 'user', content: 'x' }] } : { input: 'x' };
      const path = protocol === 'chat' ? '/v1/chat/completions' : '/v1/responses';
      const response = await gateway.post(path, { model: 'small', stream: true, ...asked });
      let text = '';
      const decoder = new TextDecoder();
      const read = async (): Promise<void> => {
        for await (const part of response.body ?? []) {
          text += decoder.decode(part, { stream: true });
          if (text.includes('one ')) proxy.cut();
        }
      };
      // A chat stream may fail by a broken connection.
      await read().catch(() => {});
      expect(readStream(protocol, text)).toMatchObject({ ending: 'failure', text: 'one ' });
      expect(seen().length - before).toBe(1);
    }
    expect(await lastRecord(gateway)).toMatchObject({ outcome: 'upstream_truncated' });
  });

  test('may close a kept connection behind its proxy at any request: no client notices', async () => {
    const { play } = scene;
    const used = new WeakSet<object>();
    // A tunnel is closed by the upstream: what is a request in it only the upstream knows.
    proxy.closesKept = true;
    let closed = 0;
    scene.play = (response, request) => {
      const { socket } = response;
      if (socket === null || !used.has(socket)) {
        if (socket !== null) used.add(socket);
        return play(response, request);
      }
      closed++;
      return void socket.destroy();
    };
    const gateway = await scene.serve({ ...scene.reach(kind), proxy: proxy.url });
    for (let times = 0; times < 10; times++)
      expect(await readAnswer(gateway, 'chat', times % 2 === 0)).toEqual(wholeAnswer);
    expect(closed + proxy.closed).toBeGreaterThan(0);
  });

  test('is examined by the doctor through its proxy', async () => {
    const settings = { ...scene.reach(kind), proxy: proxyAddress(proxy.port) };
    const report = await examineUrl(settings.url, { upstream: settings });
    const text = JSON.stringify(report);
    expect(text).toContain(`(the proxy 127.0.0.1:${proxy.port} of upstreams.mine.proxy)`);
    expect(text).not.toContain(password);
    expect(report.checks.map(({ id, status }) => `${id} ${status}`)).toContain('chat.stream ok');
    proxy.refuses = 403;
    const refused = JSON.stringify(await examineUrl(settings.url, { upstream: settings }));
    expect(refused).toContain('403');
    expect(new Set(proxy.asked.map((line) => line.split(' ')[0]))).toEqual(
      new Set(kind === 'with TLS' ? ['CONNECT'] : ['GET', 'POST']),
    );
  });
});

describe('a proxy of the environment', () => {
  test('is used, but neither for this machine nor for a host in NO_PROXY nor against the setting none', async () => {
    vi.stubEnv('HTTP_PROXY', proxy.url);
    vi.stubEnv('NO_PROXY', 'excepted.invalid');
    const gateway = await scene.serve(
      { url: scene.upstream.url },
      {
        upstreams: {
          local: { url: scene.upstream.url },
          proxied: { url: 'http://proxied.invalid/v1' },
          excepted: { url: 'http://excepted.invalid/v1' },
          direct: { url: 'http://direct.invalid/v1', proxy: 'none' },
        },
        routes: ['proxied', 'excepted', 'direct', 'local'].map((name) => ({ upstream: name, model: 'tiny' })),
      },
    );
    expect(await readAnswer(gateway, 'chat', false)).toEqual(wholeAnswer);
    expect(proxy.asked).toEqual(['POST http://proxied.invalid/v1/chat/completions']);
  });

  test('with a fault in its address prevents the start, and is not quoted', async () => {
    vi.stubEnv('https_proxy', 'socks5://me:secret-word@proxy.test:1080');
    await expect(scene.serve({ url: scene.upstream.url })).rejects.toThrow(
      /^the environment can't be used:\n {2}- https_proxy: expected the address of an HTTP proxy.*SOCKS is not supported$/,
    );
  });
});

describe('the certificate of an upstream', () => {
  const causeOf = async (settings: UpstreamInput): Promise<string> => {
    scene.log = '';
    const gateway = await scene.serve(settings);
    expect(await readAnswer(gateway, 'chat', true)).toMatchObject({ code: 'upstream_unavailable' });
    return scene.log;
  };

  test('must be signed by the authority in tls.ca, and the system’s do not count beside it', async () => {
    expect(await causeOf({ url: scene.secure.url })).toContain('Set upstreams.local.tls.ca to a file');
    const other = makeAuthority();
    expect(await causeOf({ url: scene.secure.url, tls: { ...scene.client, ca: other.cert } })).toContain(
      "the server's certificate is signed by an unknown authority",
    );
    expect(scene.secure.seen).toEqual([]);
  });

  test('must be for the host, or for tls.serverName', async () => {
    scene.secure.show(scene.authority.issue('model.internal'));
    expect(await causeOf(scene.reach('with TLS'))).toContain("the server's certificate is not for localhost");
    const gateway = await scene.serve({
      url: scene.secure.url,
      tls: { ...scene.reach('with TLS').tls, serverName: 'model.internal' },
    });
    expect(await readAnswer(gateway, 'chat', true)).toEqual(wholeAnswer);
    expect((await gateway.post('/tokenize', {})).status).toBe(200);
  });

  test('may ask for one of the gateway, which the advice says where it is missing', async () => {
    expect(await causeOf({ url: scene.secure.url, tls: { ca: scene.authority.cert } })).toContain(
      'asks for a client certificate (upstreams.local.tls.cert and upstreams.local.tls.key)',
    );
  });

  test('is verified with other files as soon as they are replaced, and with the last good ones until then', async () => {
    const clock = createFakeClock();
    const next = makeAuthority();
    const ca = `${scene.authority.cert}.used`;
    const { cert } = scene.authority;
    writeFileSync(ca, readFileSync(cert));
    const gateway = await scene.serve({ url: scene.secure.url, tls: { ...scene.client, ca } }, { clock });
    const ask = async () => (await gateway.post('/tokenize', {})).status;
    expect(await ask()).toBe(200);
    // In one step: a file that is written in place is read empty by chance.
    const replace = (text: string | Buffer): void => {
      writeFileSync(`${ca}.next`, text);
      renameSync(`${ca}.next`, ca);
    };
    replace('no certificate');
    await eventually('it is reported', () => {
      clock.advance(2_000);
      return scene.log.includes('a file of certificates can not be read: the last certificates stay in use');
    });
    expect(scene.log).toContain('tls.ca: expected a certificate in PEM');
    expect(await ask()).toBe(200);
    scene.secure.show(next.issue('localhost'));
    expect(await ask()).toBe(502);
    replace(readFileSync(next.cert));
    await eventually('the new authority counts', async () => {
      clock.advance(2_000);
      return (await ask()) === 200;
    });
    expect(scene.log).toContain('a file of certificates can be read again');
  });
});
