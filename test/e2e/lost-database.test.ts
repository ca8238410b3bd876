import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createFakeClock } from '../support/fake-clock.ts';
import { readRecords } from '../support/records.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';

const body = { model: 'small', messages: [{ role: 'user', content: 'x' }] };

test('a mounted gateway with a deleted database reports that, refuses new requests, and saves the database when it is closed', async () => {
  const clock = createFakeClock();
  const storage = join(makeTemporaryFolder(), 'textgate.db');
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  upstream.play(sayTexts(['x']));
  const gateway = await startGateway({ storage, clock, upstreamUrl: upstream.url });
  expect((await gateway.post('/v1/chat/completions', body)).status).toBe(200);
  rmSync(storage);
  clock.advance(2_000);
  expect((await gateway.gateway.failed).message).toContain('deleted');
  const refused = await gateway.post('/v1/chat/completions', body);
  expect(refused.status).toBe(503);
  expect(await refused.json()).toMatchObject({ error: { code: 'storage_unavailable' } });
  expect(existsSync(storage)).toBe(false);
  await gateway.gateway.close();
  expect(readRecords(storage).map(({ outcome }) => outcome)).toEqual(['completed']);
});
