import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { eventually } from '../support/eventually.ts';
import { readLive } from '../support/live-answer.ts';
import { readRecords } from '../support/records.ts';
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

      const other = new DatabaseSync(file);
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
