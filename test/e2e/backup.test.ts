import { get } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { fillDatabase } from '../support/filled-database.ts';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

let file: string;
beforeEach(() => {
  file = join(makeTemporaryFolder(), 'textgate.db');
});

/** The copies in the folder of the database. */
const copies = (): readonly string[] => readdirSync(dirname(file)).filter((name) => name.includes('.copy-'));

async function start(records = 0): Promise<TestGateway> {
  const gateway = await startGateway({ storage: file });
  onTestFinished(() => gateway.close());
  if (records > 0) fillDatabase(file, { keys: 10, records });
  return gateway;
}

/** Starts to fetch a backup without reading its body. */
function beginBackup({ adminUrl, adminToken }: TestGateway): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get(`${adminUrl}/admin/backup`, { headers: { authorization: `Bearer ${adminToken}` } }, resolve).on(
      'error',
      reject,
    );
  });
}

describe('GET /admin/backup', () => {
  test('makes one copy at a time, and deletes it when the client disconnects halfway', async () => {
    // More than the socket buffers hold, so that sending it takes until the client reads.
    const gateway = await start(100_000);
    const first = await beginBackup(gateway);
    expect(first.statusCode).toBe(200);
    expect(Number(first.headers['content-length'])).toBeGreaterThan(10_000_000);
    expect(copies()).toHaveLength(1);
    const second = await askAdmin(gateway, 'GET', '/backup');
    expect(second).toMatchObject({ status: 429, body: { error: { code: 'concurrency_limit_exceeded' } } });
    expect(second.headers.get('retry-after')).toBe('10');
    first.destroy();
    await eventually('the copy is deleted', () => copies().length === 0);
    await eventually('the next copy is made', async () => {
      const third = await askAdmin(gateway, 'GET', '/backup');
      return third.status === 200 && third.text.startsWith('SQLite format 3\0');
    });
    await eventually('the copy is deleted', () => copies().length === 0);
  }, 120_000);

  test('is not served by the public listener, and only for GET', async () => {
    const gateway = await start();
    expect((await fetch(`${gateway.adminUrl}/admin/backup`)).status).toBe(401);
    expect((await fetch(`${gateway.url}/admin/backup`)).status).toBe(404);
    const headers = { authorization: `Bearer ${gateway.adminToken}` };
    for (const method of ['POST', 'HEAD']) {
      const refused = await fetch(`${gateway.adminUrl}/admin/backup`, { method, headers });
      expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET']);
    }
  });

  test('reports that a database in memory has no file', async () => {
    const gateway = await startGateway();
    onTestFinished(() => gateway.close());
    expect((await askAdmin(gateway, 'GET', '/backup')).body.error).toMatchObject({
      code: 'invalid_value',
      message: expect.stringContaining('in memory') as string,
    });
  });

  test('deletes the incomplete copies of a process that was killed', async () => {
    writeFileSync(`${file}.copy-1234`, 'half a copy');
    await start();
    expect(copies()).toEqual([]);
  });
});

describe('GET /admin/ledger', () => {
  test('runs one verification at a time, and stops it when the client disconnects', async () => {
    const gateway = await start(20_000);
    const leaving = new AbortController();
    const first = fetch(`${gateway.adminUrl}/admin/ledger`, {
      headers: { authorization: `Bearer ${gateway.adminToken}` },
      signal: leaving.signal,
    });
    const gone = Promise.allSettled([first]);
    await eventually('a second one is refused', async () => {
      const { status, body } = await askAdmin(gateway, 'GET', '/ledger');
      return status === 429 && body.error.code === 'concurrency_limit_exceeded';
    });
    leaving.abort();
    expect(await gone).toMatchObject([{ status: 'rejected' }]);
    await eventually(
      'the next one is accepted',
      async () => {
        const { status, body } = await askAdmin(gateway, 'GET', '/ledger');
        return status === 200 && body.records === 20_000 && body.faults.length === 0;
      },
      120_000,
    );
  }, 120_000);
});
