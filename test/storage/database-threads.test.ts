import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { describe, expect, onTestFinished, test } from 'vitest';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import type { Engine, Statement } from '../../src/storage/engine.ts';
import type { ThreadReply } from '../../src/storage/sqlite/thread-messages.ts';
import { say } from '../conformance/engine.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openThreadedEngine } from '../support/test-engine.ts';

const insert = (value: number): Statement => say('INSERT INTO t VALUES (?)', value);
const count = say('SELECT count(*) AS count FROM t');

/** Keeps its thread busy for a while. */
const slow = say(
  'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500000) SELECT max(i) FROM n',
);

/** More deaths than this are too many within it, in milliseconds: the window of the product, and a little more. */
const restartWindowMs = 600_001;

type Role = 'writer' | 'reader' | 'copier' | 'checker';

interface TestedEngine {
  readonly engine: Engine;
  readonly clock: FakeClock;
  readonly faults: string[];
  /** Ends the thread of this role that was started last, as a crash would. */
  readonly kill: (role: Role) => Promise<void>;
  readonly started: (role: Role) => number;
  /** What the next thread is to open instead of the file. */
  readonly misdirect: (path: string) => void;
}

async function open(
  path = join(makeTemporaryFolder(), 'textgate.db'),
  onReply: (reply: ThreadReply) => void = () => {},
): Promise<TestedEngine> {
  const threads: { readonly role: Role; readonly worker: Worker }[] = [];
  const clock = createFakeClock();
  const faults: string[] = [];
  let instead: string | null = null;
  const engine = openThreadedEngine(path, {
    clock,
    onFault: (message) => void faults.push(message),
    startThread(options) {
      const worker = new Worker(new URL('../../src/storage/sqlite/sqlite-worker.ts', import.meta.url), {
        workerData: { ...options, path: instead ?? options.path },
      });
      threads.push({ role: options.role, worker });
      worker.on('message', onReply);
      return worker;
    },
  });
  onTestFinished(() => engine.close());
  await engine.ready;
  await engine.run([say('CREATE TABLE t (a INTEGER)')]);
  return {
    engine,
    clock,
    faults,
    async kill(role) {
      await threads.findLast((thread) => thread.role === role)?.worker.terminate();
    },
    started: (role) => threads.filter((thread) => thread.role === role).length,
    misdirect: (other) => void (instead = other),
  };
}

async function countRows(engine: Engine): Promise<unknown> {
  const [rows] = await engine.read([count]);
  return rows?.[0]?.['count'];
}

describe('the engine', () => {
  test('refuses reads where too many wait for their turn, and still commits', async () => {
    const { engine } = await open();
    const reads = [slow, ...Array.from({ length: 2_500 }, () => count)].map((one) => engine.read([one]));
    const settled = Promise.allSettled(reads);
    await engine.run([insert(1)]);
    const refused = (await settled).filter(({ status }) => status === 'rejected');
    expect(refused).toHaveLength(501);
    expect(refused[0]).toMatchObject({ reason: expect.any(StorageError) as StorageError });
  });

  test('reads a database in memory over its one connection', async () => {
    const { engine, started } = await open(':memory:');
    await engine.run([insert(1)]);
    expect(await countRows(engine)).toBe(1);
    expect(started('reader')).toBe(0);
  });
});

describe('the writer thread', () => {
  test('answers a turn of more units than share a commit in several replies, each with the number of its first', async () => {
    const replies: { readonly first: number; readonly count: number }[] = [];
    const { engine } = await open(':memory:', (reply) => {
      if (reply.kind === 'results') replies.push({ first: reply.first, count: reply.results.length });
    });
    replies.length = 0;
    const numbers = Array.from({ length: 1_200 }, (_, number) => number);
    const results = await Promise.all(
      numbers.map((number) => engine.run([say('SELECT ? AS number', number)])),
    );
    expect(results).toEqual(numbers.map((number) => [[{ number }]]));
    const [{ first } = { first: 0 }] = replies;
    expect(replies).toEqual([
      { first, count: 500 },
      { first: first + 500, count: 500 },
      { first: first + 1_000, count: 200 },
    ]);
  });

  test('goes on after a turn whose units can not be sent to it: these are refused for now', async () => {
    const { engine } = await open(':memory:');
    const unsendable = say('SELECT ?', (() => 1) as unknown as null);
    const settled = await Promise.allSettled([engine.run([insert(1)]), engine.run([unsendable])]);
    expect(settled).toMatchObject([
      { reason: { name: 'StorageError', isPermanent: false } },
      { reason: { name: 'StorageError', isPermanent: false } },
    ]);
    await engine.run([insert(2)]);
    expect(await countRows(engine)).toBe(1);
  });

  test('is started again when it dies: units that waited for it are refused, later ones are run', async () => {
    const { engine, faults, kill } = await open();
    await engine.run([insert(1)]);
    const waiting = Promise.allSettled([engine.run([slow])]);
    await kill('writer');
    expect(await waiting).toEqual([{ status: 'rejected', reason: expect.any(StorageError) as StorageError }]);
    await engine.run([insert(2)]);
    expect(await countRows(engine)).toBe(2);
    expect(engine.broken).toBeNull();
    expect(faults).toEqual(['the database thread died and is started again']);
  });

  test('is started again after ten minutes without a death, and not sooner', async () => {
    const { engine, clock, kill, started } = await open();
    await kill('writer');
    await engine.run([insert(1)]);
    clock.advance(restartWindowMs);
    await kill('writer');
    await engine.run([insert(2)]);
    expect(started('writer')).toBe(3);
    clock.advance(1_000);
    await kill('writer');
    await expect(engine.lost).resolves.toBeInstanceOf(StorageError);
    expect(engine.broken).toBeInstanceOf(StorageError);
    await expect(engine.run([insert(3)])).rejects.toThrow(StorageError);
    expect(started('writer')).toBe(3);
  });

  test('loses the database when it can not open it again', async () => {
    const { engine, kill, misdirect } = await open();
    misdirect('/dev/null/no.db');
    await kill('writer');
    expect((await engine.lost).message).toContain("can't be opened");
    await expect(engine.run([insert(1)])).rejects.toThrow(StorageError);
  });

  test('loses a database in memory when it dies', async () => {
    const { engine, kill, started } = await open(':memory:');
    await kill('writer');
    await engine.lost;
    expect(started('writer')).toBe(1);
    await expect(engine.read([count])).rejects.toThrow(StorageError);
  });
});

describe('the reader thread', () => {
  test('is not started again on a file that was emptied: its log would be deleted under the writer', async () => {
    const path = join(makeTemporaryFolder(), 'textgate.db');
    const { engine, clock, faults, kill } = await open(path);
    await engine.run([insert(1)]);
    await kill('reader');
    writeFileSync(path, '');
    clock.advance(100);
    await expect(engine.read([count])).rejects.toThrow('the database file is empty');
    await eventually('the reader has ended', () => faults.length > 1);
    expect(statSync(`${path}-wal`).size).toBeGreaterThan(0);
  });

  test('is started again after a growing delay whenever it dies, while commits go on', async () => {
    const { engine, clock, kill, started, faults } = await open();
    for (const waitMs of [100, 200, 400]) {
      await kill('reader');
      expect(engine.impaired).toBe('the database can not be read right now');
      await expect(engine.read([count])).rejects.toThrow('being restarted');
      await engine.run([insert(waitMs)]);
      clock.advance(waitMs - 1);
      await expect(engine.read([count])).rejects.toThrow('being restarted');
      clock.advance(1);
      await countRows(engine);
      expect(engine.impaired).toBeNull();
    }
    expect(await countRows(engine)).toBe(3);
    expect(started('reader')).toBe(4);
    expect(faults).toHaveLength(3);
  });

  test('refuses the reads that waited for it when it dies', async () => {
    const { engine, kill } = await open();
    const reads = Promise.allSettled([engine.read([slow]), engine.read([count])]);
    await kill('reader');
    expect((await reads).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await eventually('the engine is impaired', () => engine.impaired !== null);
  });
});
