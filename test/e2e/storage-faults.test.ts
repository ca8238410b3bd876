import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { readRecords } from '../support/records.ts';
import { canMount, mountSmallDisk } from '../support/small-disk.ts';
import { serveHere } from '../support/serve-here.ts';
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

describe('a gateway whose database is locked by another process', () => {
  test(
    'refuses new requests before any upstream call, lets a running one end, and settles it when the lock is free',
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
      await eventually('the request is in progress', () => running.text.includes('one '));

      const other = new DatabaseSync(file, { timeout: 5_000 });
      other.exec('BEGIN IMMEDIATE');
      const startedMs = performance.now();
      const refused = gateway.post('/v1/chat/completions', body, { headers });
      // Its record waits for the lock before any other write. Behind one, it would wait for as long as two writes may take,
      // which is as long as its request waits: it could be begun after its refusal, and the sweep would close it later.
      await eventually('both requests are in progress', async () => {
        const { body: inFlight } = await askAdmin(gateway, 'GET', '/in-flight');
        return inFlight.data.filter(({ model }: { model: string | null }) => model !== null).length === 2;
      });
      const unready = await fetch(`${gateway.adminUrl}/readyz`);
      expect(unready.status).toBe(503);
      expect(await unready.text()).toContain(
        'the database does not accept writes: it takes too long to answer',
      );
      const called = upstream.seen.length;
      const refusedWithoutBalance = gateway.post('/v1/chat/completions', body);
      (await finish.promise)();
      const probe = await fetch(`${gateway.adminUrl}/healthz`);
      expect(probe.status).toBe(200);
      expect(performance.now() - startedMs).toBeLessThan(4_000);

      const answer = await refused;
      expect(answer.status).toBe(503);
      expect(await answer.json()).toMatchObject({ error: { code: 'storage_unavailable' } });
      expect((await refusedWithoutBalance).status).toBe(503);
      expect(upstream.seen.length).toBe(called);
      await running.ended;
      expect(running.text).toMatch(/two[^]*data: \[DONE\]\n\n$/);
      const usable = async () =>
        /^textgate_database_usable (\d)$/m.exec(
          await (await fetch(`${gateway.adminUrl}/metrics`)).text(),
        )?.[1];
      expect(await usable()).toBe('0');
      other.exec('ROLLBACK');
      other.close();

      await eventually('the kept settlement is made', () => readRecords(file)[0]?.outcome === 'completed');
      await eventually(
        'it is ready again',
        async () => (await fetch(`${gateway.adminUrl}/readyz`)).status === 200,
      );
      expect(await usable()).toBe('1');
      const { body: shown } = await askAdmin(gateway, 'GET', `/keys/${key.id}`);
      expect(shown).toMatchObject({ balance: '0.999975', held: '0.00', spent: '0.000025' });
      expect((await askAdmin(gateway, 'GET', '/ledger')).body.faults).toEqual([]);
      await gateway.close();
    },
    patienceMs,
  );
});

describe.skipIf(!canMount())('a gateway on a full disk (needs the right to mount one)', () => {
  const running = { ...body, stream: true };

  /** Opens a stream that continues when the test releases it. */
  async function startStream(post: (body: object) => Promise<Response>) {
    const frames = chatFrames(['one ', 'two']);
    const finish = Promise.withResolvers<() => void>();
    upstream.play((response) => {
      sendStream(response, frames.slice(0, 2));
      finish.resolve(() => response.end(frames.slice(2).join('')));
    });
    const answer = readLive(post(running));
    await eventually('the request is in progress', () => answer.text.includes('one '));
    return { answer, finish: await finish.promise };
  }

  test('refuses new requests, lets a running one end, and settles it when there is space', async () => {
    const disk = mountSmallDisk();
    const storage = join(disk.folder, 'textgate.db');
    const gateway = await startGateway({ upstreamUrl: upstream.url, storage });
    const { answer, finish } = await startStream((wanted) => gateway.post('/v1/chat/completions', wanted));
    disk.fill();
    await eventually('the log of the database has no space left', async () => {
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

  test('makes no upstream call that can’t be recorded, and is not ready until there is space', async () => {
    const disk = mountSmallDisk();
    const storage = join(disk.folder, 'textgate.db');
    const gateway = await startGateway({
      upstreamUrl: upstream.url,
      storage,
      limits: { requestsPerMinute: 1_000_000 },
    });
    const ready = async () => {
      const answer = await fetch(`${gateway.adminUrl}/readyz`);
      return { status: answer.status, text: await answer.text() };
    };
    expect((await ready()).status).toBe(200);
    disk.fill();
    await eventually(
      'the idle gateway reports that it is not ready',
      async () => (await ready()).status === 503,
    );
    expect((await ready()).text).toContain('the database does not accept writes: its disk is full');
    expect((await ready()).text).not.toContain(disk.folder);
    const called = upstream.seen.length;
    for (let number = 0; number < 50; number++)
      expect((await gateway.post('/v1/chat/completions', body)).status).toBe(503);
    expect(upstream.seen.length).toBe(called);
    disk.free();
    await eventually('the gateway is ready again', async () => (await ready()).status === 200);
    expect((await gateway.post('/v1/chat/completions', body)).status).toBe(200);
    await gateway.close();
  });

  test.each([
    ['SIGTERM', 0, 'settlements left in the spool for the next start'],
    ['SIGKILL', null, 'consumption record not begun'],
  ] as const)(
    'keeps a settlement in the spool over %s, and the next start settles it once',
    async (signal, exitCode, said) => {
      const disk = mountSmallDisk();
      const environment = {
        TEXTGATE_PORT: '0',
        TEXTGATE_ADMIN_PORT: '0',
        TEXTGATE_UPSTREAM_URL: upstream.url,
      };
      upstream.play((response) => void response.end('{"data":[{"id":"small"}]}'));
      const server = startTextgate(['serve'], disk.folder, environment);
      const [, url = '', key = ''] = await server.printed(/BASE_URL=(\S+)\n\s*export OPENAI_API_KEY=(\S+)/);
      await server.printed(/^models: 1 of /m);
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const post = (wanted: object): Promise<Response> =>
        fetch(`${url}/chat/completions`, { method: 'POST', headers, body: JSON.stringify(wanted) });
      const { answer, finish } = await startStream(post);
      disk.fill();
      await eventually('the log of the database has no space left', async () => {
        const tried = await post(body);
        return (await tried.text()).includes('storage_unavailable');
      });
      finish();
      await answer.ended;
      expect(answer.text).toMatch(/two[^]*data: \[DONE\]\n\n$/);
      server.signal(signal);
      const { code, stdout } = await server.finished;
      expect(code).toBe(exitCode);
      expect(stdout).toContain(said);
      const storage = join(disk.folder, 'data', 'textgate.db');
      disk.free();
      upstream.play((response) => void response.end('{"data":[{"id":"small"}]}'));
      const next = serveHere(['serve'], disk.folder, environment);
      await next.printed(/textgate serves/);
      const [settled] = readRecords(storage);
      expect(settled).toMatchObject({ outcome: 'completed', status: 200, output_tokens: 7 });
      expect(next.output()).not.toContain('could not be made');
    },
    patienceMs,
  );
});

describe('a file that is not a database', () => {
  test('is refused at the start, and stays unchanged', async () => {
    writeFileSync(file, 'not a database, but another file that is long enough to be checked'.repeat(100));
    await expect(startGateway({ upstreamUrl: upstream.url, storage: file })).rejects.toThrow(
      /can't be opened/,
    );
    expect(() => new DatabaseSync(file).exec('SELECT 1 FROM sqlite_master')).toThrow('not a database');
  });
});
