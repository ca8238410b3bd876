import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import express from 'express';
import { expect, test } from 'vitest';
import type { OpenedRecord, SettledRecord } from '../../src/domain/money/consumption.ts';
import { createGateway } from '../../src/index.ts';
import { writeSpoolLine } from '../../src/storage/spool/spool-lines.ts';
import { createStore } from '../../src/storage/store.ts';
import { askAdmin } from '../support/admin-client.ts';
import { readRecords } from '../support/records.ts';
import { modelPrice } from '../support/model-price.ts';
import { openThreadedEngine } from '../support/test-engine.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { startGateway } from '../support/test-gateway.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { beginningOf, openedRecord, payingKey } from '../support/stored-rows.ts';

const keyId = 'key_payer';

/** A price of one nano-USD per token. */
const price = modelPrice({ input: 1_000_000, output: 1_000_000 });

const settled = (name: string, chargeNanos: number): SettledRecord => ({
  requestId: requestIdFor(name),
  begun: beginningOf(opened(name)),
  outcome: 'completed',
  upstream: 'u',
  attempts: [],
  status: 200,
  usage: {
    inputTokens: chargeNanos,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 0,
    reasoningTokens: 0,
    totalTokens: chargeNanos,
  },
  usageSource: 'upstream',
  price,
  chargeNanos,
  firstTextMs: 1,
  totalMs: 2,
});

/** A request with a name as it begins. */
const opened = (name: string): OpenedRecord => ({
  ...openedRecord,
  requestId: requestIdFor(name),
  keyId,
  queuedMs: 1,
  price,
  hold: { nanos: 1_000, leastNanos: 1 },
});

/** A database as a process killed with three open requests leaves it: with a hold for each on its key's balance. */
async function leaveDatabase(path: string): Promise<void> {
  const engine = openThreadedEngine(path);
  const store = createStore(engine, { nextId: () => randomUUID(), now: () => Date.now(), report: () => {} });
  const key = { ...payingKey, id: keyId, name: 'payer' };
  await store.createKey(key, 'hash', 1_000_000_000);
  for (const name of ['a', 'b', 'lost']) await store.open(opened(name));
  await engine.close();
}

test('the start settles the records in the spool before it closes the other open records as lost', async () => {
  const storage = join(makeTemporaryFolder(), 'textgate.db');
  await leaveDatabase(storage);
  const database = new DatabaseSync(storage);
  database.exec('INSERT INTO record_removals (id, removed_before) VALUES (1, 1)');
  database.close();
  const lines = [
    settled('a', 700),
    // Records of its time were removed: its own may have been among them, and would be charged twice.
    { ...settled('removed', 9), requestId: requestIdFor('removed', 0) },
    settled('b', 50),
    settled('a', 700),
  ];
  writeFileSync(`${storage}-settlements`, `${lines.map(writeSpoolLine).join('')}torn`);
  let log = '';
  const gateway = await startGateway({
    storage,
    logDestination: { write: (line) => void (log += line) },
  });
  // None is late: each was settled while it was open, before the others were closed.
  expect(
    readRecords(storage).map(({ request_id: id, outcome, status, late }) => [id, outcome, status, late]),
  ).toEqual([
    [requestIdFor('lost'), 'lost', 500, 0],
    [requestIdFor('a'), 'completed', 200, 0],
    [requestIdFor('b'), 'completed', 200, 0],
  ]);
  const { body } = await askAdmin(gateway, 'GET', `/keys/${keyId}`);
  expect(body).toMatchObject({ balance: '0.99999925', held: '0.00', spent: '0.00000075' });
  expect((await askAdmin(gateway, 'GET', '/ledger')).body.faults).toEqual([]);
  expect(log).toMatch(/damaged lines of the spool of settlements were left out/);
  expect(log).toMatch(
    new RegExp(`no open record of ${requestIdFor('removed', 0)}.*a kept settlement could not be made`),
  );
  expect(readFileSync(`${storage}-settlements`).every((byte) => byte === 0)).toBe(true);
  await gateway.close();
});

test('a mounted gateway closes earlier open records before its first request, and not the record of that request', async () => {
  const storage = join(makeTemporaryFolder(), 'textgate.db');
  await leaveDatabase(storage);
  const gateway = createGateway(
    {
      storage: { url: `sqlite:${storage}` },
      upstreams: { demo: { url: 'demo:' } },
      models: { small: { routes: [{ upstream: 'demo', model: 'demo' }], free: true } },
    },
    { logLevel: 'silent' },
  );
  const server = express().use('/llm', gateway.router).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { key: secret } = await gateway.keys.create({ name: 'mine' });
  const answer = await fetch(`http://127.0.0.1:${port}/llm/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'x' }] }),
  });
  expect(answer.status).toBe(200);
  await answer.text();
  expect(readRecords(storage).map(({ outcome }) => outcome)).toEqual(['lost', 'lost', 'lost', 'completed']);
  server.closeAllConnections();
  server.close();
  await gateway.close();
});
