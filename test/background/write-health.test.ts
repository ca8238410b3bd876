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
  void health.observe(new Promise(() => {}));
  clock.advance(stuckMs);
  expect(health.isStuck).toBe(false);
  clock.advance(1);
  expect(health.isStuck).toBe(true);
});

test('a write that waits, as for the lock of one key, is no reason to refuse those of others that are made meanwhile', async () => {
  const { clock, health } = setUp();
  void health.observe(new Promise(() => {}));
  clock.advance(stuckMs);
  await health.observe(Promise.resolve());
  clock.advance(stuckMs);
  expect(health.isStuck).toBe(false);
  expect(health.fault).toBe('slow');
  clock.advance(1);
  expect(health.isStuck).toBe(true);
});

test('the refusal of a write whose key another session has locked says nothing of the writes of others', async () => {
  const { health } = setUp();
  const refuse = () => health.observe(Promise.reject(new KeyLockedError('locked')));
  await expect(refuse()).rejects.toThrow('locked');
  expect([health.isStuck, health.fault, health.isWriting]).toEqual([false, null, false]);
  await expect(health.observe(Promise.reject(new StorageError('full', 'full')))).rejects.toThrow('full');
  await expect(refuse()).rejects.toThrow('locked');
  expect([health.isStuck, health.fault]).toEqual([true, 'full']);
});

test('a database whose last write failed is stuck until one is made', async () => {
  const { health } = setUp();
  await expect(health.observe(Promise.reject(new StorageError('full', 'full')))).rejects.toThrow('full');
  expect(health.isStuck).toBe(true);
  await health.observe(Promise.resolve());
  expect(health.isStuck).toBe(false);
});
