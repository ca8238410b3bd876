import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Engine } from '../../src/storage/engine.ts';
import { createStore } from '../../src/storage/store.ts';
import { say } from '../conformance/engine.ts';
import { openThreadedEngine } from '../support/test-engine.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { openedRecord, payingKey } from '../support/stored-rows.ts';

const tools = { nextId: () => randomUUID(), now: () => 7, report: () => {} };

async function openEngine(path = ':memory:'): Promise<Engine> {
  const engine = openThreadedEngine(path);
  onTestFinished(() => engine.close());
  await engine.ready;
  return engine;
}

describe('the writer', () => {
  test('runs units in the order in which they were handed in, however many there are', async () => {
    const engine = await openEngine();
    await engine.run([say('CREATE TABLE t (a INTEGER)')]);
    const numbers = Array.from({ length: 2_000 }, (_, number) => number);
    await Promise.all(numbers.map((number) => engine.run([say('INSERT INTO t VALUES (?)', number)])));
    const [rows] = await engine.run([say('SELECT a FROM t ORDER BY rowid')]);
    expect(rows?.map((row) => row['a'])).toEqual(numbers);
  });

  test('commits to the file what was handed in before the close, and refuses later units', async () => {
    const path = join(makeTemporaryFolder(), 'textgate.db');
    const engine = openThreadedEngine(path, { durability: 'full' });
    const early = engine.run([say('CREATE TABLE t (a INTEGER)'), say('INSERT INTO t VALUES (7)')]);
    await Promise.all([early, engine.close()]);
    await expect(engine.run([say('SELECT 1')])).rejects.toThrow('closed');
    const database = new DatabaseSync(path);
    expect(database.prepare('SELECT a FROM t').all()).toMatchObject([{ a: 7 }]);
    database.close();
  });
});

describe('a database', () => {
  test('is opened by one process at a time, and by the next once that one has closed', async () => {
    const path = join(makeTemporaryFolder(), 'textgate.db');
    const first = openThreadedEngine(path);
    await first.ready;
    const second = openThreadedEngine(path);
    await expect(second.ready).rejects.toThrow('another textgate process');
    await second.close();
    await first.close();
    await openEngine(path);
  });
});

describe('a process on a file', () => {
  const opened = { ...openedRecord, hold: { nanos: 700, leastNanos: 1 } };
  const key = payingKey;

  test('closes at once what the process before it left open: the lock of the file proves that one dead', async () => {
    const path = join(makeTemporaryFolder(), 'textgate.db');
    const first = openThreadedEngine(path);
    const earlier = createStore(first, tools);
    await earlier.renewLease();
    await earlier.createKey(key, 'h', 1_000);
    await earlier.open(opened);
    await first.close();
    const engine = await openEngine(path);
    const store = createStore(engine, tools);
    await store.renewLease();
    await store.open({ ...opened, requestId: requestIdFor('2'), hold: { nanos: 5, leastNanos: 1 } });
    expect(await store.closeLostRecords()).toBe(1);
    expect((await store.accounts(['key_a'])).get('key_a')).toEqual({
      balanceNanos: 995,
      heldNanos: 5,
      spentNanos: 0,
    });
  });
});
