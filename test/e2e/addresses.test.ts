import { createServer, request as httpRequest } from 'node:http';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { IncomingMessage, RequestListener } from 'node:http';
import type { ListenOptions } from 'node:net';
import express from 'express';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createGateway } from '../../src/index.ts';
import type { ConfigInput } from '../../src/index.ts';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { openRaw, rawPost } from '../support/raw-socket.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

const chat = '/v1/chat/completions';
const body = { model: 'small', messages: [{ role: 'user' as const, content: 'x' }] };

/** A gateway that this machine is a trusted proxy of: a request says itself which address it comes from. */
async function start(options: TestGatewayOptions = {}) {
  let log = '';
  const gateway = await startGateway({
    ...options,
    server: { trustedProxies: ['loopback'], ...options.server },
    logDestination: { write: (line) => void (log += line) },
  });
  onTestFinished(() => gateway.close());
  const requests = (): readonly Record<string, unknown>[] =>
    log
      .split('\n')
      .filter((line) => line.includes('"msg":"request"'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { gateway, requests, log: () => log };
}

/** Asks as a client at an address behind the trusted proxy. */
async function askFrom({ url }: Pick<TestGateway, 'url'>, secret: string, address: string, path = chat) {
  const isRead = path !== chat;
  const response = await fetch(url + path, {
    method: isRead ? 'GET' : 'POST',
    headers: {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      'x-forwarded-for': address,
    },
    ...(isRead ? {} : { body: JSON.stringify(body) }),
  });
  // eslint-disable-next-line typescript/no-explicit-any -- what a test reads is checked by what it expects
  return { status: response.status, headers: response.headers, body: (await response.json()) as any };
}

async function serve(handler: RequestListener, at: ListenOptions = { port: 0, host: '127.0.0.1' }) {
  const server = createServer(handler).listen(at);
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const bound = server.address();
  return typeof bound === 'object' && bound !== null ? `http://127.0.0.1:${bound.port}` : '';
}

describe('a key with a list of addresses', () => {
  test('is used from them alone: elsewhere it is a 403 that names the address and what to do', async () => {
    const { gateway } = await start();
    const { secret } = await gateway.gateway.createKey('office', {
      allowFrom: ['203.0.113.0/24', '2001:db8::/32'],
    });
    for (const address of ['203.0.113.9', '2001:db8::5', '::ffff:203.0.113.9'])
      expect((await askFrom(gateway, secret, address)).status).toBe(200);
    const refused = await askFrom(gateway, secret, '198.51.100.7');
    expect(refused.status).toBe(403);
    expect(refused.body).toEqual({
      error: {
        message: expect.stringMatching(
          /the address 198\.51\.100\.7\. Ask the operator .*allowFrom/,
        ) as string,
        type: 'invalid_request_error',
        param: null,
        code: 'address_not_allowed',
      },
    });
    // What is allowed is not told: the key may have leaked.
    expect(JSON.stringify(refused.body)).not.toContain('203.0.113');
    expect((await askFrom(gateway, gateway.key, '198.51.100.7')).status).toBe(200);
  });

  test('can’t be used elsewhere on any path: models, its own record, receipts', async () => {
    const { gateway } = await start();
    const { secret } = await gateway.gateway.createKey('office', { allowFrom: ['203.0.113.9'] });
    for (const path of ['/v1/models', '/v1/models/small', '/v1/key', '/v1/key/requests']) {
      expect((await askFrom(gateway, secret, '203.0.113.9', path)).status).toBe(200);
      expect(await askFrom(gateway, secret, '203.0.113.8', path)).toMatchObject({
        status: 403,
        body: { error: { code: 'address_not_allowed' } },
      });
    }
    const own = await askFrom(gateway, secret, '203.0.113.9', '/v1/key');
    expect(own.body.allow_from).toEqual(['203.0.113.9']);
  });

  test('can’t be used elsewhere on a passthrough path', async () => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    const { gateway } = await start({
      upstreamUrl: upstream.url,
      passthrough: [{ path: '/tokenize', upstream: 'local', free: true }],
    });
    const { secret } = await gateway.gateway.createKey('office', { allowFrom: ['203.0.113.9'] });
    expect((await askFrom(gateway, secret, '203.0.113.8', '/tokenize')).body.error.code).toBe(
      'address_not_allowed',
    );
    expect(upstream.seen).toEqual([]);
  });

  test('loses no start and no slot elsewhere, and is refused there before the body arrives', async () => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    upstream.play(sayTexts(['x']));
    const { gateway, requests } = await start({
      upstreamUrl: upstream.url,
      limits: { requestsPerMinute: 1, concurrency: 1 },
    });
    const { secret } = await gateway.gateway.createKey('office', { allowFrom: ['203.0.113.9'] });
    const headOf = rawPost(chat, secret, body).split('\r\n\r\n')[0] ?? '';
    const client = openRaw(gateway.url);
    client.socket.write(`${headOf}\r\nX-Forwarded-For: 203.0.113.8\r\n\r\n`);
    await eventually('it is refused', () => client.text().includes('address_not_allowed'));
    expect(client.text()).not.toContain('x-ratelimit');
    expect((await askFrom(gateway, secret, '203.0.113.7')).status).toBe(403);
    expect((await askFrom(gateway, secret, '203.0.113.9')).status).toBe(200);
    expect((await askFrom(gateway, secret, '203.0.113.9')).status).toBe(429);
    expect((await askFrom(gateway, secret, '203.0.113.7')).status).toBe(403);
    expect(upstream.seen).toHaveLength(1);
    const [first] = requests();
    expect(first).toMatchObject({
      keyName: 'office',
      outcome: 'refused',
      status: 403,
      code: 'address_not_allowed',
      clientAddress: '203.0.113.8',
      cause: "the key's allowFrom does not have 203.0.113.8",
    });
    const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    expect(metrics).toMatch(/textgate_requests_total\{[^}]*outcome="refused",status="403"\} 3/);
    // It is no wrong key: none was summed up.
    expect(metrics).not.toMatch(/textgate_requests_total\{[^}]*status="401"/);
  });

  test('is checked again after a wait for a slot', async () => {
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    upstream.play(sayTexts(['x']));
    const { gateway } = await start({
      upstreamUrl: upstream.url,
      limits: { concurrency: 1, queueWait: '60s' },
    });
    const { key, secret } = await gateway.gateway.createKey('office');
    const first = openRaw(gateway.url);
    const [head = '', sent = ''] = rawPost(chat, secret, body).split('\r\n\r\n');
    first.socket.write(`${head}\r\n\r\n`);
    const inFlight = async () => (await askAdmin(gateway, 'GET', '/in-flight')).body.data.length as number;
    await eventually('it has the slot', async () => (await inFlight()) === 1);
    const waiting = askFrom(gateway, secret, '203.0.113.8');
    await eventually('the next one waits', async () => (await inFlight()) === 2);
    await gateway.gateway.keys.update(key.id, { allowFrom: ['203.0.113.9'] });
    first.socket.write(sent);
    expect(await waiting).toMatchObject({ status: 403, body: { error: { code: 'address_not_allowed' } } });
  });

  test('is created, changed, listed and freed by the admin API; a bad entry is named', async () => {
    const { gateway } = await start();
    const made = await askAdmin(gateway, 'POST', '/keys', {
      name: 'a',
      allowFrom: ['10.0.0.0/8', '2001:DB8::/32', '::ffff:192.0.2.1', '10.0.0.0/8'],
    });
    expect(made.body.allow_from).toEqual(['10.0.0.0/8', '2001:db8::/32', '192.0.2.1']);
    const path = `/keys/${made.body.id as string}`;
    expect((await askFrom(gateway, made.body.key, '203.0.113.9')).status).toBe(403);
    const changed = await askAdmin(gateway, 'PATCH', path, { allowFrom: ['203.0.113.9'] });
    expect(changed.body.allow_from).toEqual(['203.0.113.9']);
    expect((await askFrom(gateway, made.body.key, '203.0.113.9')).status).toBe(200);
    expect((await askAdmin(gateway, 'PATCH', path, { name: 'b' })).body.allow_from).toEqual(['203.0.113.9']);
    for (const cleared of [null, []]) {
      await askAdmin(gateway, 'PATCH', path, { allowFrom: ['203.0.113.9'] });
      expect((await askAdmin(gateway, 'PATCH', path, { allowFrom: cleared })).body.allow_from).toBeNull();
      expect((await askFrom(gateway, made.body.key, '198.51.100.1')).status).toBe(200);
    }
    for (const [entry, said] of [
      ['10.1.2.3/8', 'write 10.0.0.0/8 for the network'],
      ['office', 'expected an IP address or a network'],
      ['10.0.0.0/33', 'expected an IP address or a network'],
    ])
      expect((await askAdmin(gateway, 'PATCH', path, { allowFrom: ['10.0.0.1', entry] })).body.error).toEqual(
        {
          message: expect.stringContaining(said ?? '') as string,
          type: 'invalid_request_error',
          param: 'allowFrom.1',
          code: 'invalid_value',
        },
      );
    const many = Array.from({ length: 65 }, (_, index) => `10.0.0.${index}`);
    expect((await askAdmin(gateway, 'PATCH', path, { allowFrom: many })).status).toBe(400);
    expect((await askAdmin(gateway, 'PATCH', path, { allowFrom: many.slice(1) })).status).toBe(200);
  });
});

/** The config of a gateway in an app, with one declared key. */
function appConfig(server: ConfigInput['server'], allowFrom: string[]): ConfigInput {
  return {
    server,
    storage: { url: 'sqlite::memory:' },
    keys: { declared: { key: declaredKey, allowFrom } },
    upstreams: { demo: { url: 'demo:' } },
    models: { small: { routes: [{ upstream: 'demo', model: 'm' }], free: true } },
  };
}
const declaredKey = 'c2fdb9a3a8f04c5f9f36d6b1c87e6a44';

describe('in an app that mounts the router', () => {
  async function mount(server: ConfigInput['server'], allowFrom: string[]) {
    const gateway = createGateway(appConfig(server, allowFrom), { logLevel: 'silent' });
    onTestFinished(() => gateway.close());
    await gateway.hasKeys();
    return gateway;
  }

  test('a key is used from its addresses alone, by the config of the gateway and not by that of the app', async () => {
    const { router } = await mount({ trustedProxies: ['loopback'] }, ['203.0.113.9']);
    const url = await serve(express().set('trust proxy', false).use(router));
    expect((await askFrom({ url }, declaredKey, '203.0.113.9')).status).toBe(200);
    expect((await askFrom({ url }, declaredKey, '203.0.113.8')).body.error.code).toBe('address_not_allowed');
    const untrusting = await mount({}, ['203.0.113.9']);
    const other = await serve(express().set('trust proxy', true).use(untrusting.router));
    const refused = await askFrom({ url: other }, declaredKey, '203.0.113.9');
    expect(refused.body.error.message).toContain('the address 127.0.0.1.');
  });

  test('a client on a Unix socket is on this machine, and may be a trusted proxy', async () => {
    const { router } = await mount({ trustedProxies: ['loopback'] }, ['127.0.0.1', '203.0.113.9']);
    const socketPath = join(makeTemporaryFolder(), 'gateway.sock');
    await serve(express().use(router), { path: socketPath });
    const ask = async (headers: Record<string, string>): Promise<number | undefined> => {
      const asked = httpRequest({ socketPath, path: '/v1/models', headers });
      asked.end();
      const [response] = (await once(asked, 'response')) as [IncomingMessage];
      await text(response);
      return response.statusCode;
    };
    const authorization = `Bearer ${declaredKey}`;
    expect(await ask({ authorization })).toBe(200);
    expect(await ask({ authorization, 'x-forwarded-for': '203.0.113.9' })).toBe(200);
    expect(await ask({ authorization, 'x-forwarded-for': '203.0.113.8' })).toBe(403);
  });

  test('a request of the Fetch API has no address, whatever its headers say', async () => {
    const gateway = await mount({ trustedProxies: ['loopback'] }, ['127.0.0.0/8', '203.0.113.9']);
    const answer = await gateway.fetch(
      new Request('http://x/v1/models', {
        headers: { authorization: `Bearer ${declaredKey}`, 'x-forwarded-for': '203.0.113.9' },
      }),
    );
    expect(answer.status).toBe(403);
    expect(await answer.text()).toContain('an address that is not known here');
  });
});

describe('the log', () => {
  test('has the address where proxies are trusted, and where the config says so', async () => {
    for (const [server, address] of [
      [{ trustedProxies: ['loopback'] }, '203.0.113.9'],
      [{ trustedProxies: [], logAddresses: true }, '127.0.0.1'],
    ] as const) {
      const { gateway, requests } = await start({
        server: { ...server, trustedProxies: [...server.trustedProxies] },
      });
      await askFrom(gateway, gateway.key, '203.0.113.9');
      await eventually('it is logged', () => requests().length === 1);
      expect(requests()[0]).toMatchObject({ clientAddress: address });
    }
  });

  test('has no address by default, nor where the config forbids it', async () => {
    for (const server of [{ trustedProxies: [] }, { logAddresses: false }]) {
      const { gateway, requests, log } = await start({ server });
      await askFrom(gateway, gateway.key, '203.0.113.9');
      await eventually('it is logged', () => requests().length === 1);
      expect(requests()[0]).not.toHaveProperty('clientAddress');
      expect(log()).not.toContain('203.0.113.9');
    }
  });
});

describe('trusted proxies', () => {
  test('change with a reload, on open connections, too', async () => {
    const config: ConfigInput = {
      ...appConfig({ port: 0 }, ['203.0.113.9']),
      admin: { port: 0 },
    };
    const gateway = createGateway(config, { logLevel: 'silent' });
    onTestFinished(() => gateway.close());
    const { url } = await gateway.listen();
    expect((await askFrom({ url }, declaredKey, '203.0.113.9')).status).toBe(403);
    expect(gateway.reload({ ...config, server: { port: 0, trustedProxies: ['127.0.0.1'] } })).toEqual([]);
    expect((await askFrom({ url }, declaredKey, '203.0.113.9')).status).toBe(200);
    gateway.reload(config);
    expect((await askFrom({ url }, declaredKey, '203.0.113.9')).status).toBe(403);
  });

  test('have no limit of connections without a key, and keep them as long as clients do', async () => {
    const { gateway } = await start({ server: { maxConnections: 100, maxAnonymousPerAddress: 2 } });
    const clients = Array.from({ length: 20 }, () => openRaw(gateway.url));
    for (const client of clients) {
      client.socket.write('GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n');
      await eventually('it is answered', () => client.text().includes('HTTP/1.1 401'));
      expect(client.text()).toMatch(/\r\nkeep-alive: timeout=65\r\n/i);
    }
    expect(clients.filter((client) => client.isClosed())).toEqual([]);
  });

  test('do not add up the wrong admin tokens of their clients', async () => {
    const { gateway } = await start();
    const guess = async (address: string) =>
      (
        await askAdmin(gateway, 'GET', '/keys', undefined, {
          authorization: 'Bearer wrong',
          'x-forwarded-for': address,
        })
      ).status;
    for (let count = 0; count < 10; count++) expect(await guess('203.0.113.8')).toBe(401);
    expect(await guess('203.0.113.8')).toBe(429);
    expect(await guess('203.0.113.9')).toBe(401);
  });

  test('are not believed by the admin listener unless they are named', async () => {
    const { gateway } = await start({ server: { trustedProxies: [] } });
    const statuses: number[] = [];
    for (let count = 0; count < 11; count++) {
      const headers = { authorization: 'Bearer wrong', 'x-forwarded-for': `203.0.113.${count}` };
      statuses.push((await askAdmin(gateway, 'GET', '/keys', undefined, headers)).status);
    }
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429]);
  });
});
