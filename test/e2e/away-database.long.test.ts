import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { serveFolder } from '../support/served-folder.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { createDatabase, postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

/** The time that the test may take, in milliseconds: it starts a process, and asks some 50 routes. */
const slow = 120_000;

interface Described {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** The routes that operators and key holders may ask without a database, as everything they say is in the process. */
const withoutDatabase: readonly string[] = [
  'GET /healthz',
  'GET /metrics',
  'GET /admin/status',
  'GET /admin/upstreams',
  'GET /admin/shadow',
  'GET /admin/try/models',
  'GET /admin/groups',
  'GET /admin/webhooks',
  'POST /admin/webhooks/{name}/test',
  'GET /admin/archive',
  // Keys are not imported in this gateway, which is the answer.
  'POST /admin/keys/import',
  // Backups are made with pg_dump there, which is the answer.
  'GET /admin/backup',
];

/** What requests to a route say; the others have no body, or one that is empty. */
const bodies: Readonly<Record<string, object>> = {
  '/v1/chat/completions': { model: 'small', messages: [{ role: 'user', content: 'x' }] },
  '/v1/responses': { model: 'small', input: 'x' },
  '/admin/try/chat/completions': { model: 'small', messages: [{ role: 'user', content: 'x' }] },
  '/admin/try/responses': { model: 'small', input: 'x' },
  '/admin/keys': { name: 'other' },
  '/admin/keys/{id}': { name: 'another' },
  '/admin/keys/{id}/credits': { amount: '1.00', reference: 'payment' },
  '/admin/archive/removals': { before: '2020-01-01', ended: ['req_00000000000000000000000000000000'] },
};

/** Each operation of the published description: every route has one. */
function describedRoutes(): readonly { readonly method: string; readonly path: string }[] {
  const { paths } = JSON.parse(readFileSync('docs/openapi.json', 'utf8')) as Described;
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations)
      .filter((name) => ['get', 'post', 'patch', 'delete'].includes(name))
      // They ask the upstream or look at a cookie, and nothing else.
      .filter(() => !path.endsWith('/doctor') && path !== '/console/session')
      .map((method) => ({ method: method.toUpperCase(), path })),
  );
}

describe.skipIf(postgresAbsence !== null)(`while PostgreSQL is away${absent}`, () => {
  test(
    'every route that needs it answers 503 with retry-after: no key is called wrong, and none without money',
    async () => {
      const database = await createDatabase();
      onTestFinished(() => database.drop());
      const server = new URL(database.url);
      const proxy = await startTcpProxy({ host: server.hostname, port: Number(server.port) });
      onTestFinished(() => proxy.close());
      server.host = `127.0.0.1:${proxy.port}`;
      const upstream = await startUpstream();
      onTestFinished(() => upstream.close());
      upstream.play(sayTexts(['x']));
      const gateway = await serveFolder(makeTemporaryFolder(), upstream.url, server.href);
      const { id, key } = await gateway.ask('POST', '/keys', { name: 'payer', balance: '1.00' });
      // One that no request has named yet.
      const { key: unused } = await gateway.ask('POST', '/keys', { name: 'unused', balance: '1.00' });
      const token = gateway.environment['TEXTGATE_ADMIN_TOKEN'];
      const send = (method: string, path: string, bearer: unknown): Promise<Response> => {
        const isPublic = path.startsWith('/v1/');
        const filled = path
          .replace('{id}', id)
          .replace('{model}', 'small')
          .replaceAll(/\{\w+\}/g, 'req_00000000000000000000000000000000');
        const query = path.startsWith('/admin/try/') ? `?key=${String(id)}` : '';
        return fetch(`${isPublic ? gateway.url : gateway.adminUrl}${filled}${query}`, {
          method,
          headers: { authorization: `Bearer ${String(bearer)}`, 'content-type': 'application/json' },
          ...(method === 'GET' ? {} : { body: JSON.stringify(bodies[path] ?? {}) }),
        });
      };
      // The key is in the cache.
      expect((await send('POST', '/v1/chat/completions', key)).status).toBe(200);
      await proxy.refuse();
      proxy.reset();
      await eventually('new work is refused', async () => {
        const { status } = await send('GET', '/v1/models', key);
        return status === 503;
      });
      const found: string[] = [];
      for (const { method, path } of describedRoutes())
        for (const bearer of path.startsWith('/v1/') ? [key, unused] : [token]) {
          const response = await send(method, path, bearer);
          await response.text();
          const after = response.headers.get('retry-after');
          const isRefused = response.status === 503 && (path === '/readyz' || after === '5');
          if (!isRefused)
            found.push(`${response.status} ${method} ${path} ${bearer === unused ? 'unused' : ''}`);
        }
      expect(found.filter((line) => !withoutDatabase.some((route) => line.includes(`${route} `)))).toEqual(
        [],
      );
      expect(found.filter((line) => /^40[12] /.test(line))).toEqual([]);
      await proxy.accept();
      await eventually('the key pays again', async () => {
        const { status } = await send('POST', '/v1/chat/completions', key);
        return status === 200;
      });
    },
    slow,
  );
});
