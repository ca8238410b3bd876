import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { readRecords } from '../support/records.ts';
import {
  chatFrames,
  cut,
  sayTexts,
  sendJson,
  sendStream,
  startUpstream,
} from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';
import { opened, storeOver } from '../support/used-database.ts';

const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };

let upstream: ScriptedUpstream;
beforeEach(async () => {
  upstream = await startUpstream();
});
afterEach(() => upstream.close());

async function startRecording(): Promise<{ gateway: TestGateway; file: string }> {
  const file = join(makeTemporaryFolder(), 'data', 'textgate.db');
  return { gateway: await startGateway({ upstreamUrl: upstream.url, storage: file }), file };
}

describe('the consumption record', () => {
  test('has a settled row before the client reads the end of the answer', async () => {
    const { gateway, file } = await startRecording();
    upstream.play(sayTexts(['one ', 'two']));
    const sync = await gateway.post('/v1/chat/completions', body);
    await sync.text();
    expect(readRecords(file)).toMatchObject([{ mode: 'sync', outcome: 'completed' }]);
    const stream = await gateway.post('/v1/responses', { model: 'small', input: 'x', stream: true });
    await stream.text();
    expect(readRecords(file)).toMatchObject([
      {
        request_id: sync.headers.get('x-request-id'),
        protocol: 'chat',
        mode: 'sync',
        model: 'small',
        upstream: 'local',
        outcome: 'completed',
        status: 200,
        usage_source: 'upstream',
        input_tokens: 11,
        output_tokens: 7,
      },
      { request_id: stream.headers.get('x-request-id'), protocol: 'responses', mode: 'stream', status: 200 },
    ]);
    expect(readRecords(file).every(({ total_ms: total }) => total !== null && total >= 0)).toBe(true);
    await gateway.close();
  });

  test('has no row for requests that were refused before the upstream call', async () => {
    const { gateway, file } = await startRecording();
    upstream.play(sayTexts(['x']));
    for (const refused of ['{', { ...body, tools: [{}] }, { ...body, model: 'other' }])
      expect((await gateway.post('/v1/chat/completions', refused)).ok).toBe(false);
    expect(
      (await gateway.post('/v1/chat/completions', body, { headers: { authorization: 'x' } })).status,
    ).toBe(401);
    expect(readRecords(file)).toEqual([]);
    await gateway.close();
  });

  test('has the outcome of every kind of request', async () => {
    const { gateway, file } = await startRecording();
    const stream = { ...body, stream: true };

    upstream.play(sayTexts(['x'], 'length'));
    await (await gateway.post('/v1/chat/completions', body)).text();

    upstream.play((response) => sendJson(response, 500, '{}'));
    await (await gateway.post('/v1/chat/completions', body)).text();

    upstream.play((response) => {
      sendStream(response, chatFrames(['a']).slice(0, 2));
      setImmediate(() => cut(response, 'fin'));
    });
    await (await gateway.post('/v1/chat/completions', stream)).text().catch(() => {});

    upstream.play((response) => void sendStream(response, chatFrames(['a']).slice(0, 2)));
    const leaving = new AbortController();
    const left = await gateway.post('/v1/chat/completions', stream, { signal: leaving.signal });
    await left.body?.getReader().read();
    leaving.abort();

    await eventually(
      'all four are settled',
      () => readRecords(file).filter((row) => row.outcome).length === 4,
    );
    expect(
      readRecords(file).map(({ outcome, status, usage_source: source }) => [outcome, status, source]),
    ).toEqual([
      ['incomplete', 200, 'upstream'],
      ['upstream_failed', 502, 'none'],
      ['upstream_truncated', 200, 'counted'],
      ['client_closed', 200, 'counted'],
    ]);
    await gateway.close();
  });

  test('has the rows closed that a killed process left open', async () => {
    const { gateway, file } = await startRecording();
    const { key } = await gateway.gateway.createKey('killed');
    await gateway.close();
    const engine = openTestEngine(file);
    await storeOver(engine).open(opened(requestIdFor('lost'), key.id, 0));
    await engine.close();
    expect(readRecords(file)).toMatchObject([{ request_id: requestIdFor('lost'), outcome: null }]);
    const restarted = await startGateway({ upstreamUrl: upstream.url, storage: file });
    expect(readRecords(file)).toMatchObject([
      { request_id: requestIdFor('lost'), outcome: 'lost', usage_source: 'none' },
    ]);
    await restarted.close();
  });

  test('makes the gateway refuse requests when it can’t be written, with the reason only in the log', async () => {
    const { gateway, file } = await startRecording();
    upstream.play(sayTexts(['x']));
    const { DatabaseSync } = await import('node:sqlite');
    const database = new DatabaseSync(file, { timeout: 5_000 });
    database.exec(
      `CREATE TRIGGER full BEFORE INSERT ON open_rows BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END`,
    );
    database.close();
    for (const stream of [false, true]) {
      const response = await gateway.post('/v1/chat/completions', { ...body, stream });
      expect(response.status).toBe(503);
      expect(response.headers.get('retry-after')).toBe('5');
      const answer = await response.text();
      expect(JSON.parse(answer)).toMatchObject({ error: { code: 'storage_unavailable' } });
      expect(answer).not.toContain('disk');
    }
    await gateway.close();
  });
});
