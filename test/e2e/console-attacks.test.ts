import type { AddressInfo } from 'node:net';
import express from 'express';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { plant } from '../support/canaries.ts';
import { logIn, sendRaw } from '../support/console-client.ts';
import type { RawRequest } from '../support/console-client.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const readOnlyToken = 'a-read-only-token-for-tests';

let gateway: TestGateway;
/** A gateway that serves operators on all addresses, where no guard stands before the routes. */
let open: TestGateway;
/** Cookies as a browser sends them, with the name before the proof. */
let [admin, reader]: readonly [string, string] = ['', ''];
let host = '';

beforeAll(async () => {
  gateway = await startGateway({ admin: { readOnlyToken } });
  open = await startGateway({ admin: { host: '0.0.0.0', hosts: ['gateway.internal'], readOnlyToken } });
  ({ host } = new URL(gateway.adminUrl));
});
beforeEach(async () => {
  admin = (await logIn(gateway, gateway.adminToken)).cookie;
  reader = (await logIn(gateway, readOnlyToken)).cookie;
  plant(proofOf(admin), proofOf(reader));
});
afterAll(() => Promise.all([gateway.close(), open.close()]));

const proofOf = (cookie: string): string => cookie.slice(cookie.indexOf('=') + 1);
const nameOf = (cookie: string): string => cookie.slice(0, cookie.indexOf('='));
const withProof = (change: (parts: string[]) => string[]): string =>
  `${nameOf(admin)}=${change(proofOf(admin).split('.')).join('.')}`;
const keyNames = async (of = gateway): Promise<readonly string[]> =>
  (await of.gateway.keys.list()).data.map(({ name }) => name);

/** A request that creates a key, if it succeeds. */
const creating = (headers: RawRequest['headers'] = []): RawRequest => ({
  method: 'POST',
  target: '/admin/keys',
  headers: [['Content-Type', 'application/json'], ...headers],
  body: '{"name":"made by an attacker"}',
});

test('what is attacked works: a session reads, and changes something for the own page', async () => {
  expect((await sendRaw(gateway, { target: '/admin/keys', headers: [['Cookie', reader]] })).status).toBe(200);
  const own = [
    ['Cookie', `theme=dark; ${admin}`],
    ['Origin', `http://${host}`],
    ['Sec-Fetch-Site', 'same-origin'],
  ] as const;
  const made = await sendRaw(gateway, { ...creating(own), body: '{"name":"made by an operator"}' });
  expect(made.status).toBe(201);
});

describe('a cookie that proves no session', () => {
  test.for<[string, () => string]>([
    ['none at all', () => 'theme=dark'],
    ['an empty one', () => `${nameOf(admin)}=`],
    ['one with another signature', () => withProof(([a = '', b = '', c = '']) => [a, b, c, 'A'.repeat(43)])],
    ['one with a short signature', () => withProof((parts) => [...parts.slice(0, 3), 'A'])],
    ['one without a signature', () => withProof((parts) => parts.slice(0, 3))],
    ['a reader’s as an admin’s', () => `${nameOf(admin)}=${proofOf(reader).replace('read_only', 'admin')}`],
    [
      'one with a later end',
      () => withProof(([a = '', b = '', ...rest]) => [a, String(Number(b) + 1), ...rest]),
    ],
    ['one with another nonce', () => withProof(([a = '', b = '', , d = '']) => [a, b, 'A'.repeat(22), d])],
    ['one with a role of its own', () => withProof(([, ...rest]) => ['root', ...rest])],
    ['the admin token itself', () => `${nameOf(admin)}=${gateway.adminToken}`],
    ['one of another port', () => `textgate-session-1=${proofOf(admin)}`],
    ['one for HTTPS', () => `__Host-${nameOf(admin)}=${proofOf(admin)}`],
    ['one with a name in capitals', () => `${nameOf(admin).toUpperCase()}=${proofOf(admin)}`],
    ['one in quotes', () => `${nameOf(admin)}="${proofOf(admin)}"`],
    ['one of 8,000 characters', () => `${admin}${'.A'.repeat(4_000)}`],
    ['two, of which one is valid', () => `${nameOf(admin)}=tossed; ${admin}`],
    ['two valid ones', () => `${reader}; ${admin}`],
  ])('opens nothing: %s', async ([, cookie]) => {
    const own = [['Cookie', cookie()] as const, ['Origin', `http://${host}`] as const];
    const before = await keyNames();
    expect((await sendRaw(gateway, { target: '/admin/keys', headers: own.slice(0, 1) })).status).toBe(401);
    expect((await sendRaw(gateway, creating(own))).status).toBe(401);
    expect(await keyNames()).toEqual(before);
  });
});

describe('another page, with the cookie of an admin', () => {
  test.for<[string, readonly (readonly [string, string])[]]>([
    ['of another host', [['Origin', 'https://evil.example']]],
    ['of an unknown origin', [['Origin', 'null']]],
    ['of another port', [['Origin', 'http://127.0.0.1:3000']]],
    ['of another scheme', [['Origin', 'https://HOST']]],
    ['of a host that begins alike', [['Origin', 'http://HOST.evil.example']]],
    ['with a user in its origin', [['Origin', 'http://HOST@evil.example']]],
    ['with a path in its origin', [['Origin', 'http://HOST/']]],
    [
      'with two origins',
      [
        ['Origin', 'http://HOST'],
        ['Origin', 'https://evil.example'],
      ],
    ],
    ['with an empty origin', [['Origin', '']]],
    ['without an origin', []],
    ['without an origin, of the same site', [['Sec-Fetch-Site', 'same-site']]],
    ['without an origin, of the same origin', [['Sec-Fetch-Site', 'same-origin']]],
    [
      'of the same site',
      [
        ['Origin', 'http://HOST'],
        ['Sec-Fetch-Site', 'same-site'],
      ],
    ],
    [
      'of another site',
      [
        ['Origin', 'http://HOST'],
        ['Sec-Fetch-Site', 'cross-site'],
      ],
    ],
    [
      'of no site',
      [
        ['Origin', 'http://HOST'],
        ['Sec-Fetch-Site', 'none'],
      ],
    ],
    [
      'with a scheme that no trusted proxy reports',
      [
        ['Origin', 'https://HOST'],
        ['X-Forwarded-Proto', 'https'],
      ],
    ],
  ])('changes nothing: a page %s', async ([, headers]) => {
    const sent = headers.map(([name, value]) => [name, value.replace('HOST', host)] as const);
    const before = await keyNames();
    const types = ['application/json', 'text/plain', 'application/x-www-form-urlencoded'];
    for (const type of types) {
      const request = creating([['Cookie', admin], ...sent]);
      const answer = await sendRaw(gateway, {
        ...request,
        headers: [['Content-Type', type], ...(request.headers ?? []).slice(1)],
      });
      expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([401, undefined]);
    }
    const logout = {
      method: 'DELETE',
      target: '/console/session',
      headers: [['Cookie', admin], ...sent] as const,
    };
    expect((await sendRaw(gateway, logout)).status).toBe(401);
    expect((await sendRaw(gateway, { target: '/admin/keys', headers: [['Cookie', admin]] })).status).toBe(
      200,
    );
    expect(await keyNames()).toEqual(before);
  });

  test.for<[string, readonly (readonly [string, string])[]]>([
    ['of another port, whose browser calls it the same site', [['Sec-Fetch-Site', 'same-site']]],
    ['of another site', [['Sec-Fetch-Site', 'cross-site']]],
    ['of another port', [['Origin', 'http://127.0.0.1:3000']]],
    ['of an unknown origin', [['Origin', 'null']]],
  ])('reads nothing: a page %s', async ([, headers]) => {
    for (const at of [gateway, open])
      for (const target of ['/admin/keys', '/admin/backup', '/admin/usage?by=key', '/console/session']) {
        const { cookie } = await logIn(at, at.adminToken);
        const answer = await sendRaw(at, { target, headers: [['Cookie', cookie], ...headers] });
        expect([target, answer.status]).toEqual([target, 401]);
      }
  });

  test('gets no permission for what it would have to ask for before', async () => {
    for (const target of ['/admin/keys', '/console/session', '/console/', '/metrics']) {
      const { status, headers } = await sendRaw(open, {
        method: 'OPTIONS',
        target,
        headers: [
          ['Origin', 'https://evil.example'],
          ['Access-Control-Request-Method', 'DELETE'],
        ],
      });
      const allowed = [...headers.keys()].filter((name) => name.startsWith('access-control-'));
      expect([target, allowed, status === 204]).toEqual([target, [], false]);
    }
  });
});

describe('a name that was made to resolve to the listener', () => {
  test.for([
    'evil.example',
    'evil.example:PORT',
    'localhost.evil.example:PORT',
    '127.0.0.1.evil.example:PORT',
    'localhost.:PORT',
    'gateway.internal.evil.example:PORT',
    '0x7f000001:PORT',
    '2130706433:PORT',
    '127.0.0.1.:PORT',
  ])('neither shows the console nor counts for a session: %s', async (name) => {
    for (const at of [gateway, open]) {
      const { port } = new URL(at.adminUrl);
      const named = name.replace('PORT', port);
      const { cookie } = await logIn(at, at.adminToken);
      const headers = [
        ['Host', named],
        ['Cookie', cookie],
        ['Origin', `http://${named}`],
        ['Sec-Fetch-Site', 'same-origin'],
        ['Content-Type', 'application/json'],
      ] as const;
      const before = await keyNames(at);
      const login = {
        method: 'POST',
        target: '/console/session',
        body: JSON.stringify({ token: at.adminToken }),
      };
      const answers = [
        await sendRaw(at, { target: '/console/', headers: headers.slice(0, 2) }),
        await sendRaw(at, { target: '/console/session', headers }),
        await sendRaw(at, { target: '/admin/keys', headers: headers.slice(0, 2) }),
        await sendRaw(at, { ...creating(), headers }),
        await sendRaw(at, { ...login, headers }),
        await sendRaw(at, {
          ...creating(),
          headers: [...headers, ['Authorization', `Bearer ${at.adminToken}`]],
        }),
      ];
      expect(answers.map(({ status }) => status)).toEqual(Array<number>(6).fill(401));
      expect(answers.filter((answer) => answer.headers.has('set-cookie'))).toEqual([]);
      expect(await keyNames(at)).toEqual(before);
    }
  });

  test('is not believed from X-Forwarded-Host, nor from the target', async () => {
    const headers = [
      ['Host', 'evil.example'],
      ['X-Forwarded-Host', host],
      ['Forwarded', `host=${host}`],
      ['Cookie', admin],
    ] as const;
    expect((await sendRaw(open, { target: '/console/', headers })).status).toBe(401);
    expect((await sendRaw(open, { target: `http://${host}/console/`, headers })).status).toBe(401);
  });

  test('stays usable for scrapers, probes and programs with the token, as it was without a console', async () => {
    const named = [['Host', 'metrics.internal']] as const;
    for (const target of ['/metrics', '/healthz', '/docs/'])
      expect((await sendRaw(open, { target, headers: named })).status).toBe(200);
    const token = ['Authorization', `Bearer ${open.adminToken}`] as const;
    expect((await sendRaw(open, { target: '/admin/keys', headers: [...named, token] })).status).toBe(200);
  });

  test('may be one of admin.hosts', async () => {
    const { port } = new URL(open.adminUrl);
    const named = [
      ['Host', `Gateway.internal:${port}`],
      ['Origin', `http://gateway.internal:${port}`],
    ] as const;
    expect((await sendRaw(open, { target: '/console/', headers: named.slice(0, 1) })).status).toBe(200);
    const { cookie } = await logIn(open, open.adminToken, named);
    const made = await sendRaw(open, { ...creating([['Cookie', cookie], ...named]), body: '{"name":"own"}' });
    expect(made.status).toBe(201);
  });
});

describe('the read-only token', () => {
  test.for(['POST', 'PATCH', 'DELETE', 'PUT', 'OPTIONS', 'PROPFIND'])(
    'changes nothing by %s',
    async (method) => {
      const [key] = (await gateway.gateway.keys.list()).data;
      const ways = [
        [['Authorization', `Bearer ${readOnlyToken}`]],
        [
          ['Cookie', reader],
          ['Origin', `http://${host}`],
        ],
      ] as const;
      for (const headers of ways)
        for (const target of [
          '/admin/keys',
          `/admin/keys/${key?.id}`,
          '/admin/archive/folds',
          '/admin/none',
        ]) {
          const { status, body } = await sendRaw(gateway, { ...creating(headers), method, target });
          expect([status, JSON.parse(body)]).toMatchObject([403, { error: { code: 'read_only_token' } }]);
        }
      expect((await gateway.gateway.keys.list()).data).toEqual(expect.arrayContaining([key]));
    },
  );

  test.for([
    '/admin/backup',
    '/admin/backup/',
    '/admin/Backup',
    '/admin/backup?x',
    '/admin/./backup',
    '/admin/%62ackup',
  ])('gets no copy of the database, which has the private key of statements, at %s', async (target) => {
    for (const headers of [[['Authorization', `Bearer ${readOnlyToken}`]], [['Cookie', reader]]] as const) {
      const { status, body } = await sendRaw(gateway, { target, headers });
      expect([403, 404]).toContain(status);
      expect(body).not.toContain('SQLite format');
    }
  });

  test('reads what the admin token reads, and is not taken for another method by a header', async () => {
    const token = ['Authorization', `Bearer ${readOnlyToken}`] as const;
    const override = ['X-HTTP-Method-Override', 'DELETE'] as const;
    const before = await keyNames();
    for (const method of ['GET', 'HEAD'])
      for (const target of ['/admin/keys', '/admin/records', '/admin/usage?by=day', '/admin/in-flight'])
        expect((await sendRaw(gateway, { method, target, headers: [token, override] })).status).toBe(200);
    expect(await keyNames()).toEqual(before);
  });
});

describe('the login', () => {
  const posted = (
    body: string,
    headers: RawRequest['headers'] = [['Content-Type', 'application/json']],
  ): RawRequest => ({
    method: 'POST',
    target: '/console/session',
    headers,
    body,
  });
  const form = ['Content-Type', 'application/x-www-form-urlencoded'] as const;

  test('gives a cookie that no script reads and no other site sends, for a limited time', async () => {
    const { setCookie } = await logIn(gateway, gateway.adminToken);
    const [, ...attributes] = setCookie.split('; ');
    expect(attributes).toEqual(['Path=/', 'Max-Age=43200', 'HttpOnly', 'SameSite=Strict']);
  });

  test('takes a form, and leads back to the console', async () => {
    const answer = await sendRaw(gateway, posted(`token=${readOnlyToken}`, [form]));
    expect([answer.status, answer.headers.get('location')]).toEqual([303, './']);
    const cookie = answer.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
    const read = await sendRaw(gateway, { target: '/console/session', headers: [['Cookie', cookie]] });
    expect(JSON.parse(read.body)).toMatchObject({ role: 'read_only', expires_at: expect.any(String) });
  });

  test('of another page is refused, which would log an operator in to a session of its choice', async () => {
    for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:3000']) {
      const answer = await sendRaw(gateway, posted(`token=${readOnlyToken}`, [form, ['Origin', origin]]));
      expect([answer.status, answer.headers.get('set-cookie')]).toEqual([401, undefined]);
    }
    const hidden = await sendRaw(
      gateway,
      posted(`token=${readOnlyToken}`, [form, ['Sec-Fetch-Site', 'same-site']]),
    );
    expect([hidden.status, hidden.headers.get('set-cookie')]).toEqual([401, undefined]);
  });

  test.for<[string, number, () => RawRequest]>([
    ['a body over the limit', 413, () => posted(JSON.stringify({ token: 'x'.repeat(5_000) }))],
    ['a body of another type', 415, () => posted('<token/>', [['Content-Type', 'text/xml']])],
    ['a compressed body', 415, () => posted('x', [form, ['Content-Encoding', 'gzip']])],
    ['broken JSON', 400, () => posted('{"token":')],
    ['a list of tokens', 400, () => posted(JSON.stringify({ token: [gateway.adminToken] }))],
    ['a token twice', 400, () => posted(`token=${gateway.adminToken}&token=${gateway.adminToken}`, [form])],
    ['another field', 400, () => posted(JSON.stringify({ token: gateway.adminToken, role: 'admin' }))],
    ['no object', 400, () => posted('null')],
    ['an own __proto__', 400, () => posted('{"__proto__":{"token":"x"}}')],
    [
      'the token in the query',
      400,
      () => ({ ...posted('{}'), target: `/console/session?token=${readOnlyToken}` }),
    ],
    ['an empty token', 401, () => posted('{"token":""}')],
  ])('is refused with %s (%i)', async ([, status, request]) => {
    const answer = await sendRaw(gateway, request());
    expect([answer.status, answer.headers.get('set-cookie')]).toEqual([status, undefined]);
    expect(answer.body).not.toContain(gateway.adminToken);
  });

  test('of a body without a length is read up to the limit', async () => {
    const chunked = [
      ['Content-Type', 'application/json'],
      ['Transfer-Encoding', 'chunked'],
    ] as const;
    const answer = await sendRaw(gateway, posted(`1400\r\n${' '.repeat(0x1400)}\r\n`, chunked));
    expect([answer.status, answer.headers.get('set-cookie')]).toEqual([413, undefined]);
  });

  test('is limited by network like other wrong tokens, is logged, and never locks the right one out', async () => {
    let log = '';
    const limited = await startGateway({ logDestination: { write: (line) => void (log += line) } });
    const tries = Array.from({ length: 12 }, () => sendRaw(limited, posted('{"token":"a wrong token"}')));
    const statuses = (await Promise.all(tries)).map(({ status }) => status);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([...Array<number>(10).fill(401), 429, 429]);
    const bearer = ['Authorization', 'Bearer wrong'] as const;
    expect((await sendRaw(limited, { target: '/admin/keys', headers: [bearer] })).status).toBe(429);
    expect((await logIn(limited, limited.adminToken)).cookie).toContain('textgate-session');
    await limited.close();
    expect(log.match(/wrong token at the login of the console/g)).toHaveLength(10);
    expect(log).not.toContain('a wrong token');
  });

  test('out ends the session, of which a copy no longer counts', async () => {
    const own = [
      ['Cookie', admin],
      ['Origin', `http://${host}`],
    ] as const;
    const answer = await sendRaw(gateway, { method: 'DELETE', target: '/console/session', headers: own });
    expect([answer.status, answer.headers.get('set-cookie')]).toEqual([
      204,
      expect.stringContaining('=; Path=/; Max-Age=0'),
    ]);
    expect((await sendRaw(gateway, { target: '/admin/keys', headers: [['Cookie', admin]] })).status).toBe(
      401,
    );
    const asked = await sendRaw(gateway, { target: '/console/session', headers: [['Cookie', admin]] });
    expect(JSON.parse(asked.body)).toEqual({ role: null, name: null, expires_at: null });
    gateway.gateway.reload(otherConfig());
    expect((await sendRaw(gateway, { target: '/admin/keys', headers: [['Cookie', admin]] })).status).toBe(
      401,
    );
  });
});

/** Another config with the same tokens, which a reload puts into force. */
function otherConfig(): Parameters<TestGateway['gateway']['reload']>[0] {
  return {
    admin: { port: 0, token: gateway.adminToken, readOnlyToken },
    storage: { url: 'sqlite::memory:' },
    upstreams: { local: { url: 'demo:' } },
    models: { from: 'local' },
  };
}

describe('the files of the console', () => {
  test.for([
    '/console/../package.json',
    '/console/%2e%2e/package.json',
    '/console/%2e%2e%2fpackage.json',
    '/console/..%2fpackage.json',
    '/console/%252e%252e%252fpackage.json',
    '/console/..\\package.json',
    '/console/..%5cpackage.json',
    '/console/%00',
    '/console/app.js%00.html',
    '/console/app.js%20',
    '/console//etc/passwd',
    '/console/./app.js',
    '/console/%61pp.js',
    '/console/app.ts',
    '/console/session.ts',
    '/console/tsconfig.json',
    '/console/index.html',
    '/console/APP.JS',
    '/console/app.js/',
    '/console/v-0/../../package.json',
    '/console/v-0/%2e%2e/app.js',
    '/console/v-0/v-0/app.js',
    '/console/v-zz/app.js',
    '/console/v-0/',
    '/console/vendor/',
    '/console/constructor',
    '/console/__proto__',
    '/console/%ff',
    '/Console/app.js',
    '/console/vendor',
    '/console/vendor/../app.js',
    '/console/vendor/%2e%2e/app.js',
    '/console/vendor/..%2fapp.js',
    '/console/vendor/preact',
    '/console/vendor/preact.js/',
    '/console/vendor/preact.js%00',
    '/console/vendor/preact/../../package.json',
    '/console/vendor//preact.js',
    '/console/vendor/package.json',
    '/console/vendor/constructor',
    '/console/views/',
    '/console/views/now/',
    '/console/views/now/now.ts',
    '/console/views/../app.js',
    '/console/views/now/../now/now.js',
    '/console/views/%6eow/now.js',
    '/console/views\\now\\now.js',
    '/console/v-0/../app.js',
    '/console/v-0/vendor/',
    '/console/v-0/vendor/../app.js',
    '/console/v-0/views/../../../package.json',
    '/console/v-0/views/now/now.ts',
    '/console/node_modules/preact/package.json',
  ])('are a closed list: nothing is at %s', async (target) => {
    const { status, body } = await sendRaw(gateway, { target });
    expect([status, JSON.parse(body)]).toMatchObject([404, { error: { code: 'unknown_url' } }]);
  });

  test.for(['POST', 'PUT', 'DELETE', 'PATCH'])('are read, not written, by %s', async (method) => {
    expect((await sendRaw(gateway, { method, target: '/console/app.js' })).status).toBe(405);
  });

  test('are never shown in a frame, load nothing from elsewhere and have no script in the page', async () => {
    const page = await sendRaw(gateway, { target: '/console/' });
    const script = /src="(v-[\da-f]{16}\/app\.js)"/.exec(page.body)?.[1] ?? 'none';
    const answers = [
      page,
      await sendRaw(gateway, { target: `/console/${script}` }),
      await sendRaw(gateway, { target: '/console/none' }),
      await sendRaw(gateway, { target: '/console/session' }),
      await sendRaw(gateway, { method: 'POST', target: '/console/session' }),
    ];
    for (const { headers } of answers) {
      expect(headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
      );
      expect(Object.fromEntries(headers)).toMatchObject({
        'x-frame-options': 'DENY',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
      });
    }
    expect(page.body).not.toMatch(/<script(?![^>]* src=)|<style|\son\w+=|style=|https?:/i);
  });

  test('are kept under the paths of their version, and asked for again under all others', async () => {
    const page = await sendRaw(gateway, { target: '/console/' });
    const paths = [...page.body.matchAll(/(?:src|href)="(v-[^"]+)"/g)].map(([, path]) => `/console/${path}`);
    expect(paths).toHaveLength(3);
    for (const target of paths) {
      const { status, headers } = await sendRaw(gateway, { target });
      expect([status, headers.get('cache-control')]).toEqual([200, 'public, max-age=31536000, immutable']);
    }
    const other = await sendRaw(gateway, { target: '/console/v-0/app.js' });
    expect([other.status, other.headers.get('cache-control')]).toEqual([200, 'no-cache']);
    const known = [['If-None-Match', `W/${page.headers.get('etag')}, "x"`]] as const;
    const again = await sendRaw(gateway, { target: '/console/', headers: known });
    expect([again.status, again.body]).toEqual([304, '']);
  });
});

test.for(['TRACE', 'CONNECT', 'TRACK'])('%s gives no cookie back to a script', async (method) => {
  const { status, body } = await sendRaw(gateway, {
    method,
    target: method === 'CONNECT' ? host : '/console/session',
    headers: [['Cookie', admin]],
  });
  expect(status).toBeGreaterThanOrEqual(400);
  expect(body).not.toContain(proofOf(admin));
});

test('in an app that mounts the routes below a path, the console works under the names of the app', async () => {
  const server = express().use('/ops', open.gateway.admin).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const adminUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const redirect = await sendRaw({ adminUrl }, { target: '/ops/console' });
  expect([redirect.status, redirect.headers.get('location')]).toEqual([308, 'console/']);
  const page = await sendRaw({ adminUrl }, { target: '/ops/console/' });
  expect([page.status, page.headers.get('x-frame-options')]).toEqual([200, 'DENY']);
  const login = await sendRaw(
    { adminUrl },
    {
      method: 'POST',
      target: '/ops/console/session',
      headers: [['Content-Type', 'application/json']],
      body: JSON.stringify({ token: readOnlyToken }),
    },
  );
  const cookie = login.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
  expect(
    (await sendRaw({ adminUrl }, { target: '/ops/admin/keys', headers: [['Cookie', cookie]] })).status,
  ).toBe(200);
  const rebound = [
    ['Host', 'evil.example'],
    ['Cookie', cookie],
  ] as const;
  expect((await sendRaw({ adminUrl }, { target: '/ops/admin/keys', headers: rebound })).status).toBe(401);
});

test('behind a proxy with TLS the cookie is bound to the host and to TLS, and the page has to be, too', async () => {
  const behind = await startGateway({
    server: { trustedProxies: ['loopback'] },
    admin: { hosts: ['console.example'] },
  });
  const proxied = [
    ['Host', 'console.example'],
    ['X-Forwarded-Proto', 'https'],
  ] as const;
  const { cookie, setCookie } = await logIn(behind, behind.adminToken, proxied);
  expect(setCookie).toMatch(
    /^__Host-textgate-session-443=\S+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure$/,
  );
  const statusOf = async (headers: RawRequest['headers']): Promise<number> =>
    (await sendRaw(behind, creating([['Cookie', cookie], ...(headers ?? [])]))).status;
  expect(await statusOf([...proxied, ['Origin', 'https://console.example']])).toBe(201);
  expect(await statusOf([...proxied, ['Origin', 'http://console.example']])).toBe(401);
  expect(await statusOf([...proxied, ['Origin', 'https://console.example:8443']])).toBe(401);
  expect(await statusOf([...proxied.slice(0, 1), ['Origin', 'https://console.example']])).toBe(401);
  expect(await statusOf([...proxied.slice(0, 1), ['Origin', 'http://console.example']])).toBe(401);
  await behind.close();
});
