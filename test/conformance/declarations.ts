import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { DeclarationChanges, DeclaredKey } from '../../src/domain/keys/declared-key.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createStore } from '../../src/storage/store.ts';
import type { Store } from '../../src/storage/store.ts';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import { payingKey } from '../support/stored-rows.ts';

const nowMs = 1_800_000_000_000;

/** A declared key without settings of its own. */
export function declared(name: string, hash: string, settings: Partial<DeclaredKey> = {}): DeclaredKey {
  return {
    name,
    hash,
    limits: {},
    models: null,
    allowFrom: null,
    lowBalanceNanos: null,
    tags: [],
    expiresAt: null,
    budget: null,
    group: null,
    weight: 1,
    joinRetriesMs: null,
    compatibility: {},
    ...settings,
  };
}

/** The change that stores declared keys under ids made of their names. */
function changeOf(...keys: readonly DeclaredKey[]): DeclarationChanges {
  const changed = keys.map((key) => ({
    id: `key_of_${key.name}`,
    spareId: `key_spare_of_${key.name}`,
    declared: key,
  }));
  return { changed, removed: [] };
}

function removal(...names: readonly string[]): DeclarationChanges {
  return { changed: [], removed: names };
}

/** What the store must do with declared keys over every engine. */
export function describeDeclarations(engineName: string, open: () => Promise<Engine>): void {
  const start = async (): Promise<{ readonly store: Store; readonly engine: Engine }> => {
    const engine = await open();
    onTestFinished(() => engine.close());
    return { engine, store: joinStore(engine) };
  };
  describe(`${engineName}: declared keys`, () => {
    describeIdentity(start);
  });
  describe(`${engineName}: the secrets of declared keys`, () => {
    describeSecrets(start);
  });
}

function joinStore(engine: Engine): Store {
  return createStore(engine, { nextId: () => randomUUID(), now: () => nowMs, report: () => {} });
}

type Start = () => Promise<{ readonly store: Store; readonly engine: Engine }>;

function describeIdentity(start: Start): void {
  test('are stored with their settings, and with an account without a balance', async () => {
    const { store } = await start();
    const settings = {
      limits: { concurrency: 3, requestsPerMinute: 4, queueWaitMs: 5 },
      models: ['a', 'b'],
      allowFrom: ['10.0.0.0/8', '2001:db8::1'],
      tags: ['search', 'chat:2'],
      expiresAt: nowMs + 9,
      lowBalanceNanos: 7,
      compatibility: { sampling: 'strict' },
      group: 'research',
      weight: 1_000,
      joinRetriesMs: 60_000,
      budget: { amountNanos: 8, per: 'week', timeZone: 'Asia/Kathmandu', warnAt: [500], raise: null },
    } as const;
    await store.storeDeclarations(changeOf(declared('bob', 'h1', settings)), nowMs);
    const stored = {
      id: 'key_of_bob',
      name: 'bob',
      createdAtMs: nowMs,
      revokedAtMs: null,
      hasBalance: false,
      isDeclared: true,
      ...settings,
    };
    expect(await store.findKeyByHash('h1')).toEqual(stored);
    expect((await store.listDeclarations([])).keys).toEqual([{ key: stored, hash: 'h1' }]);
    expect((await store.accounts(['key_of_bob'])).get('key_of_bob')?.balanceNanos).toBeNull();
  });

  test('lose the settings that are declared no more', async () => {
    const { store } = await start();
    await store.storeDeclarations(
      changeOf(declared('bob', 'h1', { limits: { concurrency: 3 }, weight: 4, joinRetriesMs: 1_000 })),
      nowMs,
    );
    await store.storeDeclarations(changeOf(declared('bob', 'h1', { models: ['a'] })), nowMs + 1);
    expect(await store.findKeyByHash('h1')).toMatchObject({
      limits: {},
      weight: 1,
      joinRetriesMs: null,
      models: ['a'],
      createdAtMs: nowMs,
    });
  });

  test('are revoked when they are removed, and have the same id and balance when they are declared again', async () => {
    const { store } = await start();
    await store.storeDeclarations(changeOf(declared('bob', 'h1')), nowMs);
    await store.credit({ keyId: 'key_of_bob', nanos: 7, reference: 'r' });
    await store.storeDeclarations(removal('bob'), nowMs + 1);
    expect(await store.findKeyByHash('h1')).toMatchObject({
      id: 'key_of_bob',
      revokedAtMs: nowMs + 1,
      isDeclared: true,
    });
    await store.storeDeclarations(changeOf(declared('bob', 'h1')), nowMs + 2);
    expect(await store.findKeyByHash('h1')).toMatchObject({ id: 'key_of_bob', revokedAtMs: null });
    expect((await store.accounts(['key_of_bob'])).get('key_of_bob')?.balanceNanos).toBe(7);
  });

  test('are other keys than issued ones of the same name', async () => {
    const { store } = await start();
    await store.createKey({ ...payingKey, name: 'bob', hasBalance: false }, 'issued', null);
    await store.storeDeclarations(changeOf(declared('bob', 'h1')), nowMs);
    await store.storeDeclarations(removal('bob'), nowMs);
    expect(await store.findKeyByHash('issued')).toMatchObject({ id: payingKey.id, revokedAtMs: null });
  });

  test('of earlier configs are not listed, unless their names are declared again', async () => {
    const { store } = await start();
    await store.storeDeclarations(changeOf(declared('bob', 'h1'), declared('eve', 'h2')), nowMs);
    await store.storeDeclarations({ ...changeOf(declared('ann', 'h3')), removed: ['bob', 'eve'] }, nowMs);
    const { keys } = await store.listDeclarations([declared('eve', 'h4')]);
    expect(keys.map(({ key, hash }) => [key.name, key.revokedAtMs, hash])).toEqual([
      ['ann', null, 'h3'],
      ['eve', nowMs, 'h2'],
    ]);
  });

  test('are not changed, revoked or rotated as issued keys are', async () => {
    const { store } = await start();
    await store.createKey({ ...payingKey, hasBalance: false }, 'h0', null);
    await store.rotateKey(payingKey.id, 'h1', nowMs + 9);
    await store.storeDeclarations(changeOf(declared('bob', 'h1')), nowMs);
    expect(await store.updateKey(payingKey.id, { name: 'mine', concurrency: 3 })).toMatchObject({
      name: 'bob',
      limits: {},
    });
    await store.revokeKey(payingKey.id, nowMs);
    await store.rotateKey(payingKey.id, 'h2', nowMs + 1);
    expect(await store.findKeyByHash('h1')).toMatchObject({ id: payingKey.id, revokedAtMs: null });
    expect(await store.findKeyByHash('h2')).toBeNull();
    expect(await store.findKeyByHash('h0')).toMatchObject({ expiresAt: nowMs + 9 });
    await store.storeDeclarations(changeOf(declared('bob', 'h3')), nowMs);
    expect(await store.findKeyByHash('h1')).toBeNull();
  });

  test('are the same rows when several processes store them at once', async () => {
    const { store, engine } = await start();
    const change = changeOf(declared('bob', 'h1'), declared('eve', 'h2'));
    await Promise.all(
      [store, joinStore(engine), joinStore(engine)].map((each) => each.storeDeclarations(change, nowMs)),
    );
    const names = (await store.listDeclarations([])).keys.map(({ key }) => key.name);
    expect(names.toSorted()).toEqual(['bob', 'eve']);
    expect(await store.countKeys()).toBe(2);
  });
}

function describeSecrets(start: Start): void {
  test('are replaced without a grace period', async () => {
    const { store } = await start();
    await store.storeDeclarations(changeOf(declared('bob', 'h1')), nowMs);
    await store.storeDeclarations(changeOf(declared('bob', 'h2')), nowMs);
    expect(await store.findKeyByHash('h1')).toBeNull();
    expect(await store.findKeyByHash('h2')).toMatchObject({ id: 'key_of_bob' });
  });

  test('may be exchanged between two keys', async () => {
    const { store } = await start();
    await store.storeDeclarations(changeOf(declared('bob', 'h1'), declared('eve', 'h2')), nowMs);
    await store.storeDeclarations(changeOf(declared('bob', 'h2'), declared('eve', 'h1')), nowMs);
    expect([(await store.findKeyByHash('h1'))?.name, (await store.findKeyByHash('h2'))?.name]).toEqual([
      'eve',
      'bob',
    ]);
  });

  test('make a declared key of an issued one that has the secret, with its id and its balance', async () => {
    const { store } = await start();
    await store.createKey(payingKey, 'h1', 5);
    const moved = await store.storeDeclarations(changeOf(declared('bob', 'h1', { models: ['a'] })), nowMs);
    expect(moved).toEqual({ renamed: [], adopted: ['bob'], unfunded: [] });
    expect(await store.findKeyByHash('h1')).toEqual({
      ...payingKey,
      name: 'bob',
      models: ['a'],
      isDeclared: true,
    });
    expect(await store.countKeys()).toBe(1);
  });

  test('are taken from an issued key, which is revoked, when there is a declared key of that name', async () => {
    const { store } = await start();
    await store.createKey({ ...payingKey, hasBalance: false }, 'h2', null);
    await store.storeDeclarations(changeOf(declared('bob', 'h1')), nowMs);
    await store.storeDeclarations(changeOf(declared('bob', 'h2')), nowMs);
    expect(await store.findKeyByHash('h2')).toMatchObject({ id: 'key_of_bob' });
    expect(await store.findKeyById(payingKey.id)).toMatchObject({
      revokedAtMs: nowMs,
      isDeclared: false,
    });
  });

  test('are taken from an issued key in whose grace period they are', async () => {
    const { store } = await start();
    await store.createKey({ ...payingKey, hasBalance: false }, 'h1', null);
    await store.rotateKey(payingKey.id, 'h2', nowMs + 1_000);
    await store.storeDeclarations(changeOf(declared('bob', 'h1')), nowMs);
    expect(await store.findKeyByHash('h1')).toMatchObject({ id: 'key_of_bob', hasBalance: false });
    expect(await store.findKeyByHash('h2')).toMatchObject({ id: payingKey.id });
  });

  test('are listed as retired where an issued key was revoked, or rotated and is out of its grace period', async () => {
    const { store } = await start();
    const issue = (id: string, hash: string): Promise<void> =>
      store.createKey({ ...payingKey, id, hasBalance: false }, hash, null);
    await issue('key_revoked', 'revoked');
    await store.revokeKey('key_revoked', nowMs);
    await issue('key_rotated', 'rotated');
    await store.rotateKey('key_rotated', 'in grace', nowMs);
    await store.rotateKey('key_rotated', 'in use', nowMs + 1);
    const hashes = ['revoked', 'rotated', 'in grace', 'in use', 'never seen'];
    const { retired } = await store.listDeclarations(hashes.map((hash) => declared(hash, hash)));
    expect([...retired].toSorted()).toEqual(['revoked', 'rotated']);
    await expect(store.storeDeclarations(changeOf(declared('bob', 'revoked')), nowMs)).rejects.toThrow(
      StorageError,
    );
    await store.storeDeclarations(changeOf(declared('bob', 'never seen')), nowMs);
    await expect(store.storeDeclarations(changeOf(declared('bob', 'revoked')), nowMs)).rejects.toThrow(
      StorageError,
    );
  });

  test('of declared keys are not listed as retired, since the config alone decides on them', async () => {
    const { store } = await start();
    await store.storeDeclarations(changeOf(declared('bob', 'h1')), nowMs);
    await store.credit({ keyId: 'key_of_bob', nanos: 5, reference: 'r' });
    await store.storeDeclarations(changeOf(declared('bob', 'h2')), nowMs);
    await store.storeDeclarations(removal('bob'), nowMs);
    const { retired } = await store.listDeclarations([declared('a', 'h1'), declared('b', 'h2')]);
    expect(retired.size).toBe(0);
  });
}
