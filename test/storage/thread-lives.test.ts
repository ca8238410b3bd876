import { EventEmitter } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { setImmediate } from 'node:timers/promises';
import { createSqliteEngine } from '../../src/storage/sqlite/engine.ts';
import type { ThreadReply, ThreadRequest, UnitResult } from '../../src/storage/sqlite/thread-messages.ts';
import { copyDatabase } from '../../src/storage/sqlite/copy.ts';
import { fileIdOf, filesOf } from '../../src/storage/database-files.ts';
import { watchFiles } from '../../src/storage/sqlite/file-watch.ts';
import { keepReader } from '../../src/storage/sqlite/threads.ts';
import { startDatabaseThread } from '../../src/storage/sqlite/thread.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

/** A thread that does nothing by itself: `emit` makes it answer or end. */
class ScriptedThread extends EventEmitter {
  readonly port = this as unknown as Worker;
  readonly asked: unknown[] = [];
  postMessage(message: unknown): void {
    this.asked.push(message);
  }
  async terminate(): Promise<number> {
    return 0;
  }
}

const options = { role: 'writer', path: '/db', name: '/db', durability: 'normal' } as const;

const nowMs = 1_800_000_000_000;

const toolsWith = ({ port }: ScriptedThread, maxWaiting: number) => ({
  maxWaiting,
  clock: createFakeClock(nowMs),
  start: () => port,
});

describe('a database thread', () => {
  test('rejects its close when it ends in the middle of a rescue: the database is on no disk', async () => {
    const worker = new ScriptedThread();
    const thread = startDatabaseThread(options, toolsWith(worker, 1));
    const closed = thread.close(true);
    worker.emit('error', new Error('out of memory'));
    await expect(closed).rejects.toThrow('could not be written back');
  });

  test('resolves its close when it ends without a rescue', async () => {
    const worker = new ScriptedThread();
    const thread = startDatabaseThread(options, toolsWith(worker, 1));
    const closed = thread.close();
    worker.emit('exit');
    expect(await closed).toBeNull();
  });
});

test('a thread whose results come out of order is ended: its units are rejected at once, the next thread comes after its exit', async () => {
  const worker = new ScriptedThread();
  let terminated = 0;
  worker.terminate = async () => ++terminated;
  const thread = startDatabaseThread(options, toolsWith(worker, 2));
  const units = Promise.allSettled([thread.submit([]), thread.submit([])]);
  let hasEnded = false;
  void thread.ended.then(() => (hasEnded = true));
  const early: ThreadReply = { kind: 'results', first: 2, results: [{ kind: 'done', done: [] }] };
  worker.emit('message', early);
  worker.emit('message', early);
  expect(await units).toMatchObject([
    { reason: { name: 'StorageError', message: 'the database thread answered out of order' } },
    { reason: { name: 'StorageError' } },
  ]);
  await expect(thread.submit([])).rejects.toThrow('out of order');
  expect([terminated, hasEnded]).toEqual([1, false]);
  worker.emit('exit');
  expect((await thread.ended).message).toBe('the database thread answered out of order');
});

test('the reader thread is started again later when it could not be started', () => {
  const clock = createFakeClock();
  let tries = 0;
  const worker = new ScriptedThread();
  const reader = keepReader(
    () => (++tries < 3 ? null : startDatabaseThread(options, toolsWith(worker, 1))),
    clock,
    () => {},
  );
  expect(reader.thread).toBeNull();
  clock.advance(100);
  clock.advance(200);
  expect(tries).toBe(3);
  expect(reader.thread).not.toBeNull();
});

test('a copy that can not be synced to the disk ends its thread before its file is deleted', async () => {
  const path = join(makeTemporaryFolder(), 'textgate.db');
  writeFileSync(path, '');
  const worker = new ScriptedThread();
  const copying = copyDatabase(path, systemClock, ({ target = '' }) => {
    rmSync(target);
    worker.postMessage = (message) => {
      worker.asked.push(message);
      worker.emit('exit');
    };
    return worker.port;
  });
  await expect(copying).rejects.toThrow('ENOENT');
  expect(worker.asked).toEqual([{ kind: 'close', rescue: false }]);
});

test('the end of earlier leases is offered again until the database accepts it, then no more', async () => {
  const worker = new ScriptedThread();
  const clock = createFakeClock();
  const startThread = () => worker.port;
  const engine = createSqliteEngine({
    path: ':memory:',
    durability: 'normal',
    clock,
    onFault() {},
    startThread,
  });
  /** The units that the thread was asked to run, message by message. */
  const asked = () =>
    (worker.asked as ThreadRequest[]).map((request) =>
      request.kind === 'units'
        ? request.units.map((unit) =>
            unit.kind === 'statements' ? unit.statements.map(({ sql }) => sql) : [],
          )
        : [],
    );
  const reply = async (first: number, result: UnitResult): Promise<void> => {
    worker.emit('message', { kind: 'results', first, results: [result] } satisfies ThreadReply);
    await setImmediate();
  };
  const unit = [{ sql: 'SELECT 1', values: [] }];
  const leases = ['DELETE FROM owners'];
  await setImmediate();
  await reply(1, { kind: 'failed', error: 'database is locked', code: 5 });
  engine.run(unit).catch(() => {});
  await setImmediate();
  expect(asked()).toEqual([[leases], [leases, ['SELECT 1']]]);
  await reply(2, { kind: 'done', done: [[]] });
  engine.run(unit).catch(() => {});
  await setImmediate();
  expect(asked().slice(2)).toEqual([[['SELECT 1']]]);
});

test('the units of one turn of the event loop travel in one message, and none before it ends', async () => {
  const worker = new ScriptedThread();
  const thread = startDatabaseThread(options, toolsWith(worker, 3));
  const statements = [{ sql: 'SELECT 1', values: [] }];
  const rows = Promise.all([thread.submit(statements), thread.call('open_record', ['a'])]);
  expect(worker.asked).toEqual([]);
  await setImmediate();
  expect(worker.asked).toEqual([
    {
      kind: 'units',
      first: 1,
      nowMs,
      units: [
        { kind: 'statements', statements },
        { kind: 'fixed', name: 'open_record', values: ['a'] },
      ],
    },
  ]);
  worker.emit('message', {
    kind: 'results',
    first: 1,
    results: [
      { kind: 'done', done: [[{ a: 1 }]] },
      { kind: 'done', done: [2] },
    ],
  });
  expect(await rows).toEqual([[[{ a: 1 }]], [2]]);
});

test('the units that were handed in before a close reach the thread before it', async () => {
  const worker = new ScriptedThread();
  const thread = startDatabaseThread(options, toolsWith(worker, 1));
  const unit = thread.submit([]);
  const closed = thread.close();
  expect(worker.asked).toMatchObject([{ kind: 'units', first: 1 }, { kind: 'close' }]);
  worker.emit('exit');
  await expect(unit).rejects.toThrow('ended');
  await closed;
});

test.each([
  ['no loss where the writer has ended: it went with that one', () => Promise.reject(new Error('ended')), []],
  [
    'a loss of the database where the writer lives',
    () => Promise.resolve([]),
    ['log of the database was deleted'],
  ],
])('a log that is gone is %s', async (_what, submit, expected) => {
  const path = join(makeTemporaryFolder(), 'textgate.db');
  const { lock } = filesOf(path);
  for (const file of [path, lock]) writeFileSync(file, '');
  const ids = { database: fileIdOf(path) ?? '', log: 'earlier', lock: fileIdOf(lock) ?? '' };
  const clock = createFakeClock();
  let asked = 0;
  const lost: string[] = [];
  const watch = watchFiles(path, ids, {
    clock,
    onFault() {},
    writer: {
      async relock() {
        return 'not asked for';
      },
      tell() {},
      submit() {
        asked++;
        return submit();
      },
    },
    async check() {},
    growth: { bytes: 0, note() {} },
    onLost: ({ message }) => void lost.push(message),
  });
  onTestFinished(() => watch.stop());
  clock.advance(500);
  await eventually('the log was looked for', () => asked + lost.length > 0);
  await setImmediate();
  expect(lost).toEqual(expected.map((text) => expect.stringContaining(text) as string));
});
