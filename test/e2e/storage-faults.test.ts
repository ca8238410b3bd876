import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { readRecords } from '../support/records.ts';
import { canMount, mountSmallDisk } from '../support/small-disk.ts';
import { startTextgate } from '../support/textgate-process.ts';
import { chatFrames, sayTexts, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';

const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
/** Longer than the database thread waits for a lock, in milliseconds. */
const patienceMs = 20_000;

let upstream: ScriptedUpstream;
let file: string;
beforeEach(async () => {
  upstream = await startUpstream();
  upstream.play(sayTexts(['x']));
  file = join(makeTemporaryFolder(), 'textgate.db');
});
afterEach(() => upstream.close());

describe('a database that somebody else has locked', () => {
  test(
    'refuses new requests, lets a running one end, and takes its settlement when it is free again',
    async () => {
      const gateway = await startGateway({
        upstreamUrl: upstream.url,
        storage: file,
        price: { input: '1', output: '2' },
      });
      const { key, secret } = await gateway.gateway.createKey('payer', { balanceNanos: 1_000_000_000 });
      const headers = { authorization: `Bearer ${secret}` };
      const frames = chatFrames(['one ', 'two']);
      const finish = Promise.withResolvers<() => void>();
      upstream.play((response) => {
        sendStream(response, frames.slice(0, 2));
        finish.resolve(() => response.end(frames.slice(2).join('')));
      });
      const running = readLive(gateway.post('/v1/chat/completions', { ...body, stream: true }, { headers }));
      await eventually('it runs', () => running.text.includes('one '));

      const other = new DatabaseSync(file, { timeout: 5_000 });
      other.exec('BEGIN IMMEDIATE');
      const startedMs = performance.now();
      const refused = gateway.post('/v1/chat/completions', body, { headers });
      (await finish.promise)();
      const probe = await fetch(`${gateway.adminUrl}/healthz`);
      expect(probe.status).toBe(200);
      expect(performance.now() - startedMs).toBeLessThan(4_000);

      const answer = await refused;
      expect(answer.status).toBe(503);
      expect(await answer.json()).toMatchObject({ error: { code: 'storage_unavailable' } });
      await running.ended;
      expect(running.text).toMatch(/two[^]*data: \[DONE\]\n\n$/);
      other.exec('ROLLBACK');
      other.close();

      await eventually('the kept settlement is made', () => readRecords(file)[0]?.outcome === 'completed');
      const { body: shown } = await askAdmin(gateway, 'GET', `/keys/${key.id}`);
      expect(shown).toMatchObject({ balance: '0.999975', held: '0.00', spent: '0.000025' });
      expect((await askAdmin(gateway, 'GET', '/ledger')).body.faults).toEqual([]);
      await gateway.close();
    },
    patienceMs,
  );
});

describe.skipIf(!canMount())('a disk that is full (needs the right to mount one)', () => {
  const running = { ...body, stream: true };

  /** A stream that goes on when it is told to. */
  async function startStream(post: (body: object) => Promise<Response>) {
    const frames = chatFrames(['one ', 'two']);
    const finish = Promise.withResolvers<() => void>();
    upstream.play((response) => {
      sendStream(response, frames.slice(0, 2));
      finish.resolve(() => response.end(frames.slice(2).join('')));
    });
    const answer = readLive(post(running));
    await eventually('it runs', () => answer.text.includes('one '));
    return { answer, finish: await finish.promise };
  }

  test('refuses new requests, lets a running one end, and makes its settlement when there is room', async () => {
    const disk = mountSmallDisk();
    const storage = join(disk.folder, 'textgate.db');
    const gateway = await startGateway({ upstreamUrl: upstream.url, storage });
    const { answer, finish } = await startStream((wanted) => gateway.post('/v1/chat/completions', wanted));
    disk.fill();
    await eventually('the log of the database has no room left', async () => {
      const tried = await gateway.post('/v1/chat/completions', body);
      return (await tried.text()).includes('storage_unavailable');
    });
    finish();
    await answer.ended;
    expect(answer.text).toMatch(/two[^]*data: \[DONE\]\n\n$/);
    expect(readRecords(storage)[0]?.outcome).toBeNull();
    disk.free();
    await eventually('the settlement is made', () => readRecords(storage)[0]?.outcome === 'completed');
    await gateway.close();
  });

  test('ends the process with an error if settlements are still without room at its end', async () => {
    const disk = mountSmallDisk();
    const environment = {
      TEXTGATE_PORT: '0',
      TEXTGATE_ADMIN_PORT: '0',
      TEXTGATE_UPSTREAM_URL: upstream.url,
    };
    upstream.play((response) => void response.end('{"data":[{"id":"small"}]}'));
    const server = startTextgate(['serve'], disk.folder, environment);
    const [, url = '', key = ''] = await server.printed(/BASE_URL=(\S+)\n\s*export OPENAI_API_KEY=(\S+)/);
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const post = (wanted: object): Promise<Response> =>
      fetch(`${url}/chat/completions`, { method: 'POST', headers, body: JSON.stringify(wanted) });
    const { answer, finish } = await startStream(post);
    disk.fill();
    await eventually('the log of the database has no room left', async () => {
      const tried = await post(body);
      return (await tried.text()).includes('storage_unavailable');
    });
    finish();
    await answer.ended;
    server.signal('SIGTERM');
    const { code, stderr } = await server.finished;
    expect(code).toBe(1);
    expect(stderr).toMatch(/settlements not written: [1-9]\d*\. The database did not take them/);
  });
});

describe('a file that is not a database', () => {
  test('is refused at the start, and left as it is', async () => {
    writeFileSync(
      file,
      'not a database, but somebody’s file that is long enough to be looked at'.repeat(100),
    );
    await expect(startGateway({ upstreamUrl: upstream.url, storage: file })).rejects.toThrow(
      /can't be opened/,
    );
    expect(() => new DatabaseSync(file).exec('SELECT 1 FROM sqlite_master')).toThrow('not a database');
  });
});
