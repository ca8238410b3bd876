import { expect } from 'vitest';
import type { Engine } from '../../src/storage/engine.ts';
import { createStore } from '../../src/storage/store.ts';

const names = { running: 'c1'.repeat(32), ended: 'd2'.repeat(32) };
const request = 'a5'.repeat(32);

/** A key with a claim that runs and one that has ended, as versions stored them that took the owner away at the end. */
export const rowsBeforeClaimOwners = `
  INSERT INTO api_keys (id, hash, name, created_at) VALUES ('key_before', 'hash before', 'before', 1);
  INSERT INTO accounts (key_id) VALUES ('key_before');
  INSERT INTO claim_rows (key_id, name, request, created_at, tail, owner, ended_at) VALUES
    ('key_before', unhex('${names.running}'), unhex('${request}'), 1, unhex('00'), 'gone', NULL),
    ('key_before', unhex('${names.ended}'), unhex('${request}'), 2, unhex('00'), NULL, 3);`;

/** Checks that the claims are there, that the key does not wait for retries, and that a lease has a place for an address. */
export async function expectClaimsOfBefore(engine: Engine): Promise<void> {
  const store = createStore(engine, { nextId: () => 'next', now: () => 7, report: () => {} });
  const find = async (name: string) => store.findClaim({ keyId: 'key_before', name });
  expect(await find(names.running)).toMatchObject({ request, owner: 'gone', state: 'free' });
  expect(await find(names.ended)).toMatchObject({ request, owner: null, state: 'ended' });
  expect(await store.findKeyById('key_before')).toMatchObject({ name: 'before', joinRetriesMs: null });
  await store.renewLease();
  expect(await engine.read([{ sql: 'SELECT address FROM owners', values: [] }])).toEqual([
    [{ address: null }],
  ]);
  await store.closeLostRecords();
  expect(await find(names.running)).toBe(null);
  expect(await find(names.ended)).toMatchObject({ state: 'ended' });
}
