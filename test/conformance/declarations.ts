import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { DeclarationChanges, DeclaredKey } from '../../src/domain/keys/declared-key.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createStore } from '../../src/storage/store.ts';
import type { Store } from '../../src/storage/store.ts';
import { payingKey } from '../support/stored-rows.ts';

const nowMs = 1_800_000_000_000;

/** A declared key without settings of its own. */
function declared(name: string, hash: string, settings: Partial<DeclaredKey> = {}): DeclaredKey {
  return { name, hash, limits: {}, models: null, expiresAt: null, compatibility: {}, ...settings };
}

/** The change that stores declared keys under ids made of their names. */
function changeOf(...keys: readonly DeclaredKey[]): DeclarationChanges {
  return { changed: keys.map((key) => ({ id: `key_of_${key.name}`, declared: key })), removed: [] };
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
      expiresAt: nowMs + 9,
      compatibility: { sampling: 'strict' },
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
    expect(await store.listDeclarations()).toEqual([{ key: stored, hash: 'h1' }]);
    expect((await store.accounts(['key_of_bob'])).get('key_of_bob')?.balanceNanos).toBeNull();
  });

  test('lose the settings that are declared no more', async () => {
    const { store } = await start();
    await store.storeDeclarations(changeOf(declared('bob', 'h1', { limits: { concurrency: 3 } })), nowMs);
    await store.storeDeclarations(changeOf(declared('bob', 'h1', { models: ['a'] })), nowMs + 1);
    expect(await store.findKeyByHash('h1')).toMatchObject({
      limits: {},
      models: ['a'],
      createdAtMs: nowMs,
    });
  });

  test('are revoked when they are removed, and have the same id and balance when they are declared again', async () => {
    const { store } = await start();
    await store.storeDeclarations(changeOf(declared('bob', 'h1')), nowMs);
    await store.credit({ keyId: 'key_of_bob', nanos: 7, reference: 'r' });
    await store.storeDeclarations(removal('bob'), nowMs + 1);
    expect(await store.findKeyByHash('h1')).toBeNull();
    expect(await store.findKeyById('key_of_bob')).toMatchObject({
      revokedAtMs: nowMs + 1,
      isDeclared: true,
    });
    await store.storeDeclarations(
      { changed: [{ id: 'key_other', declared: declared('bob', 'h1') }], removed: [] },
      nowMs + 2,
    );
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

  test('are the same rows when several processes store them at once', async () => {
    const { store, engine } = await start();
    const change = changeOf(declared('bob', 'h1'), declared('eve', 'h2'));
    await Promise.all(
      [store, joinStore(engine), joinStore(engine)].map((each) => each.storeDeclarations(change, nowMs)),
    );
    const names = (await store.listDeclarations()).map(({ key }) => key.name);
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

  test('may be exchanged between two keys, and be passed on to a new name', async () => {
    const { store } = await start();
    await store.storeDeclarations(changeOf(declared('bob', 'h1'), declared('eve', 'h2')), nowMs);
    await store.storeDeclarations(changeOf(declared('bob', 'h2'), declared('eve', 'h1')), nowMs);
    expect([(await store.findKeyByHash('h1'))?.name, (await store.findKeyByHash('h2'))?.name]).toEqual([
      'eve',
      'bob',
    ]);
    await store.storeDeclarations({ ...changeOf(declared('robert', 'h2')), removed: ['bob'] }, nowMs);
    expect(await store.findKeyByHash('h2')).toMatchObject({ id: 'key_of_robert', name: 'robert' });
  });

  test('make a declared key of an issued one that has the secret, with its id and its balance', async () => {
    const { store } = await start();
    await store.createKey(payingKey, 'h1', 5);
    await store.revokeKey(payingKey.id, 1);
    await store.storeDeclarations(changeOf(declared('bob', 'h1', { models: ['a'] })), nowMs);
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
    await store.storeDeclarations(removal('bob'), nowMs);
    expect(await store.findKeyByHash('h1')).toBeNull();
    expect(await store.findKeyByHash('h2')).toMatchObject({ id: payingKey.id });
  });
}
