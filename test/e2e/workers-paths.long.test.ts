import { request } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { startUpstream } from '../support/scripted-upstream.ts';
import { serveWorkers } from '../support/served-workers.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { createDatabase, postgresAbsence } from '../support/test-postgres.ts';

const page = 'https://app.example.com';
const models = '/llm/v1/models';

/** Sends a request through a unix socket, on a connection of its own. */
function call(
  socketPath: string,
  path: string,
  { method = 'GET', ...headers }: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: string }> {
  return new Promise((resolve, reject) => {
    request({ socketPath, path, method, headers, agent: false }, (response) => {
      const { statusCode: status = 0, headers: received } = response;
      text(response).then((body) => resolve({ status, headers: received, body }), reject);
    })
      .on('error', reject)
      .end();
  });
}

test.skipIf(postgresAbsence !== null)(
  'workers at a unix socket know trusted proxies, lists of addresses, pages, the base path and probes',
  async () => {
    const [database, upstream] = await Promise.all([createDatabase(), startUpstream()]);
    onTestFinished(async () => {
      await upstream.close();
      await database.drop();
    });
    const socket = join(makeTemporaryFolder(), 'textgate.sock');
    const served = await serveWorkers({
      databaseUrl: database.url,
      upstreamUrl: upstream.url,
      server: {
        port: undefined,
        socket,
        basePath: '/llm',
        trustedProxies: ['loopback'],
        corsOrigins: [page],
      },
      keySettings: { allowFrom: ['203.0.113.9'] },
    });
    expect(served.url).toBe(`http://unix:${socket}:/llm`);
    const authorization = `Bearer ${served.key}`;
    // Connections go to the workers in turn: each call is made of both.
    const callBoth = async (path: string, headers: Readonly<Record<string, string>> = {}) => {
      const answers = [await call(socket, path, headers), await call(socket, path, headers)];
      expect(answers[1]?.status).toBe(answers[0]?.status);
      return answers;
    };
    const statusOf = async (path: string, headers: Readonly<Record<string, string>> = {}) =>
      (await callBoth(path, headers))[0]?.status;

    expect(await statusOf(models, { authorization, 'x-forwarded-for': '203.0.113.9' })).toBe(200);
    const elsewhere = { authorization, origin: page, 'x-forwarded-for': '203.0.113.8' };
    for (const { status, headers, body } of await callBoth(models, elsewhere)) {
      expect([status, headers['access-control-allow-origin']]).toEqual([403, page]);
      expect(body).toContain('the address 203.0.113.8.');
    }
    for (const { body } of await callBoth(models, { authorization }))
      expect(body).toContain('the address 127.0.0.1.');

    const preflight = { method: 'OPTIONS', origin: page, 'access-control-request-method': 'POST' };
    for (const path of ['/llm/v1/chat/completions', '/healthz', '/llm/readyz', '/nowhere'])
      for (const { status, headers } of await callBoth(path, preflight))
        expect([status, headers['access-control-allow-origin']]).toEqual([204, page]);
    for (const path of ['/healthz', '/readyz', '/llm/healthz', '/llm/readyz'])
      expect(await statusOf(path)).toBe(200);
    expect(await statusOf('/v1/models', { authorization })).toBe(404);
    served.server.signal('SIGTERM');
    await served.server.finished;
  },
);
