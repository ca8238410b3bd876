import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { stuckMs, watchWrites } from '../../src/background/write-health.ts';
import { KeyLockedError, StorageError } from '../../src/domain/storage-refusal.ts';
import { createFakeClock } from '../support/fake-clock.ts';

function setUp() {
  const clock = createFakeClock();
  return { clock, health: watchWrites(clock, () => false) };
}

test('a database that answers no write for three seconds is stuck', () => {
  const { clock, health } = setUp();
  void health.observe(new Promise(() => {}), null);
  clock.advance(stuckMs);
  expect(health.isStuck).toBe(false);
  clock.advance(1);
  expect(health.isStuck).toBe(true);
});

test('a write that waits, as for the lock of one key, is no reason to refuse those of others that are made meanwhile', async () => {
  const { clock, health } = setUp();
  void health.observe(new Promise(() => {}), null);
  clock.advance(stuckMs);
  await health.observe(Promise.resolve(), null);
  clock.advance(stuckMs);
  expect(health.isStuck).toBe(false);
  expect(health.fault).toBe('slow');
  clock.advance(1);
  expect(health.isStuck).toBe(true);
});

test('the refusal of a write whose key another session has locked says nothing of the writes of others', async () => {
  const { health } = setUp();
  const refuse = () => health.observe(Promise.reject(new KeyLockedError('locked', true)), 'key_a');
  await expect(refuse()).rejects.toThrow('locked');
  expect([health.isStuck, health.fault, health.isWriting]).toEqual([false, null, false]);
  await expect(health.observe(Promise.reject(new StorageError('full', 'full')), null)).rejects.toThrow(
    'full',
  );
  await expect(refuse()).rejects.toThrow('locked');
  expect([health.isStuck, health.fault]).toEqual([true, 'full']);
});

test('a database whose last write failed is stuck until one is made', async () => {
  const { health } = setUp();
  await expect(health.observe(Promise.reject(new StorageError('full', 'full')), null)).rejects.toThrow(
    'full',
  );
  expect(health.isStuck).toBe(true);
  await health.observe(Promise.resolve(), null);
  expect(health.isStuck).toBe(false);
});

/** A write that ends when the test says so. */
function begin({ health }: ReturnType<typeof setUp>, keyId: string) {
  const write = Promise.withResolvers<void>();
  health.observe(write.promise, keyId).catch(() => {});
  return write;
}

test('an answer that a key is locked is one: the other writes of the key stop none of other keys, however long they wait', async () => {
  const bench = setUp();
  const { clock, health } = bench;
  const [first, ...others] = [begin(bench, 'key_a'), begin(bench, 'key_a'), begin(bench, 'key_a')];
  clock.advance(1_500);
  const free = begin(bench, 'key_b');
  clock.advance(1_501);
  expect(health.isStuck).toBe(true);
  first?.reject(new KeyLockedError('locked', true));
  await setImmediate();
  clock.advance(stuckMs);
  expect(health.isStuck).toBe(false);
  clock.advance(1);
  expect(health.isStuck).toBe(true);
  free.resolve();
  await setImmediate();
  clock.advance(60_000);
  expect([health.isStuck, health.fault, health.isWriting]).toEqual([false, null, false]);
  for (const { reject } of others) reject(new KeyLockedError('locked', true));
  await setImmediate();
  // A trial may wait again.
  const trial = begin(bench, 'key_a');
  clock.advance(stuckMs + 1);
  expect([health.isStuck, health.fault]).toEqual([false, null]);
  trial.resolve();
  await setImmediate();
  begin(bench, 'key_a');
  clock.advance(stuckMs + 1);
  expect([health.isStuck, health.fault]).toEqual([true, 'slow']);
});

test('a write that was refused without asking the database is no answer of it', async () => {
  const bench = setUp();
  const { clock, health } = bench;
  begin(bench, 'key_b');
  clock.advance(stuckMs);
  begin(bench, 'key_a').reject(new KeyLockedError('locked', false));
  await setImmediate();
  clock.advance(1);
  expect(health.isStuck).toBe(true);
});

test('a write of a locked key that fails for another reason counts again, as do those after it', async () => {
  const bench = setUp();
  const { clock, health } = bench;
  begin(bench, 'key_a').reject(new KeyLockedError('locked', true));
  await setImmediate();
  begin(bench, 'key_a').reject(new StorageError('away'));
  await setImmediate();
  expect([health.isStuck, health.fault]).toEqual([true, 'unavailable']);
  await health.observe(Promise.resolve(), null);
  begin(bench, 'key_a');
  expect(health.isWriting).toBe(true);
  clock.advance(stuckMs + 1);
  expect(health.isStuck).toBe(true);
});

test('a thousand keys are known as locked at a time', async () => {
  const bench = setUp();
  const { health } = bench;
  for (let number = 0; number <= 1_000; number++)
    begin(bench, `key_${number}`).reject(new KeyLockedError('locked', true));
  await setImmediate();
  begin(bench, 'key_1');
  expect(health.isWriting).toBe(false);
  begin(bench, 'key_0');
  expect(health.isWriting).toBe(true);
});
