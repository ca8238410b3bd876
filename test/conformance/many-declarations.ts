import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { DeclaredKey } from '../../src/domain/keys/declared-key.ts';
import { maxDeclaredKeys } from '../../src/domain/keys/declared-key.ts';
import { declareKeys } from '../../src/operations/declare-keys.ts';
import type { Compatibility } from '../../src/protocol/contract/compatibility.ts';
import { hashKey } from '../../src/shared/digest.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createStore } from '../../src/storage/store.ts';
import type { Store } from '../../src/storage/store.ts';
import { payingKey } from '../support/stored-rows.ts';
import { declared } from './declarations.ts';

const nowMs = 1_800_000_000_000;

interface Subject {
  readonly store: Store;
  readonly declare: (keys: readonly DeclaredKey[]) => ReturnType<typeof declareKeys>;
  /** How many statements were run in units since this was asked last. */
  readonly statements: () => number;
}

function subjectOf(engine: Engine): Subject {
  let count = 0;
  const counting = Object.assign(Object.create(engine) as Engine, {
    run(unit: Parameters<Engine['run']>[0]) {
      count += unit.length;
      return engine.run(unit);
    },
  });
  const store = createStore(counting, { nextId: () => randomUUID(), now: () => nowMs, report: () => {} });
  const ports = { store, randomBytes, hash: hashKey, now: () => nowMs };
  return {
    store,
    declare: (keys) => declareKeys(keys, ports),
    statements() {
      const counted = count;
      count = 0;
      return counted;
    },
  };
}

/** Declared keys with the secret `secret 0`, `secret 1`, … of each. */
function keysOf(count: number, secretAt = (at: number): number => at): readonly DeclaredKey[] {
  return Array.from({ length: count }, (_, at) =>
    declared(`name ${at}`, `secret ${secretAt(at)}`, { limits: { concurrency: at + 1 } }),
  );
}

/** What the store must do with as many declared keys as a config may have. */
export function describeManyDeclarations(engineName: string, open: () => Promise<Engine>): void {
  const start = async (): Promise<Subject> => {
    const engine = await open();
    onTestFinished(() => engine.close());
    return subjectOf(engine);
  };
  describe(`${engineName}: many declared keys`, () => {
    describeMany(start, open);
  });
}

function describeMany(start: () => Promise<Subject>, open: () => Promise<Engine>): void {
  test('are created, changed, renamed and removed by as many statements as one, and by none if nothing differs', async () => {
    const { store, declare, statements } = await start();
    const changes = async (count: number): Promise<readonly number[]> => {
      const keys = keysOf(count);
      const changed = keys.map((key) => ({ ...key, models: ['a'] }));
      const renamed = changed.map((key) => ({ ...key, name: `new ${key.name}` }));
      const counts: number[] = [];
      for (const config of [keys, keys, changed, renamed, []]) {
        await declare(config);
        counts.push(statements());
        expect((await store.listDeclarations([])).keys).toHaveLength(config.length);
      }
      return counts;
    };
    const counts = await changes(1);
    expect(counts[1]).toBe(0);
    expect(await changes(maxDeclaredKeys)).toEqual(counts);
    expect(await store.countKeys()).toBe(maxDeclaredKeys);
  });

  test('each get the secret of the next one in one change, and only the one that got a prepaid secret has to pay', async () => {
    const { store, declare } = await start();
    const count = 200;
    await declare(keysOf(count));
    const prepaid = await store.findKeyByHash('secret 7');
    await store.credit({ keyId: prepaid?.id ?? '', nanos: 5, reference: 'r' });
    const next = keysOf(count, (at) => (at + 1) % count);
    expect(await declare(next)).toMatchObject({ renamed: [], adopted: [], unfunded: ['name 6'] });
    const names = await Promise.all(next.map(async ({ hash }) => (await store.findKeyByHash(hash))?.name));
    expect(names).toEqual(next.map(({ name }) => name));
    const { keys } = await store.listDeclarations(next);
    const paying = keys.filter(({ key }) => key.hasBalance).map(({ key }) => key.name);
    expect(paying.toSorted()).toEqual(['name 6', 'name 7']);
  });

  test('are new, changed, renamed, removed and adopted in one change, each as alone', async () => {
    const { store, declare } = await start();
    await declare([declared('kept', 'k'), declared('old', 'o'), declared('gone', 'g'), declared('set', 's')]);
    await store.createKey({ ...payingKey, name: 'issued', hasBalance: false }, 'i', null);
    const config = [
      declared('kept', 'k'),
      declared('renamed', 'o'),
      declared('set', 's', { limits: { queueWaitMs: 9 } }),
      declared('adopted', 'i'),
      declared('new', 'n'),
    ];
    const report = await declare(config);
    expect({ ...report, removed: report.removed.toSorted() }).toEqual({
      changed: ['renamed', 'set', 'adopted', 'new'],
      removed: ['gone', 'old'],
      refused: [],
      renamed: ['renamed'],
      adopted: ['adopted'],
      unfunded: [],
    });
    const { keys } = await store.listDeclarations([...config, declared('gone', 'g')]);
    const rows = keys.map(({ key, hash }) => [
      key.name,
      { hash, revokedAtMs: key.revokedAtMs, limits: key.limits },
    ]);
    expect(Object.fromEntries(rows)).toEqual({
      adopted: { hash: 'i', revokedAtMs: null, limits: {} },
      gone: { hash: 'g', revokedAtMs: nowMs, limits: {} },
      kept: { hash: 'k', revokedAtMs: null, limits: {} },
      new: { hash: 'n', revokedAtMs: null, limits: {} },
      renamed: { hash: 'o', revokedAtMs: null, limits: {} },
      set: { hash: 's', revokedAtMs: null, limits: { queueWaitMs: 9 } },
    });
  });

  test('have any name, model and number that a config may have', async () => {
    const { store, declare } = await start();
    const names = [
      `"quoted" 'name'`,
      String.raw`back\slash \u0041`,
      '{"name": 1}',
      '12',
      '1e3',
      'null',
      'ключ 🔑',
    ];
    const all = { responsesDone: true, usageCost: true, chargeComment: true };
    const keysWith = (first: Partial<Compatibility>) =>
      names.map((name, at) =>
        declared(name, `secret ${at}`, {
          models: [`${name}/model`, ''],
          expiresAt: Date.parse('9999-12-31T23:59:59.999Z') - at,
          limits: { queueWaitMs: 2 ** 31 - 1, tokensPerMinute: 2 ** 31 - 1, tokensPerDay: 1 },
          compatibility: at === 0 ? first : all,
        }),
      );
    const keys = keysWith(all);
    await declare(keys);
    for (const { name, hash, ...settings } of keys)
      expect(await store.findKeyByHash(hash)).toMatchObject({ name, ...settings });
    expect((await declare(keys)).changed).toEqual([]);
    for (const changed of [
      { ...all, usageCost: false },
      { ...all, usageCost: false, chargeComment: false },
    ])
      expect((await declare(keysWith(changed))).changed).toEqual(names.slice(0, 1));
  });

  test('are the same rows when several processes store them at once, beside issued keys with their secrets', async () => {
    const engine = await open();
    onTestFinished(() => engine.close());
    const [first, second, third] = [subjectOf(engine), subjectOf(engine), subjectOf(engine)];
    const keys = keysOf(100);
    const issued = { ...payingKey, hasBalance: false };
    const [reports, creation] = await Promise.all([
      Promise.all([first, second, third].map(({ declare }) => declare(keys))),
      first.store.createKey(issued, 'secret 50', null).catch((error: unknown) => String(error)),
    ]);
    expect(reports.flatMap(({ refused }) => refused)).toEqual([]);
    // The issued key came first and was adopted, or was refused because its secret is that of another key.
    const adopted = reports.flatMap((report) => report.adopted);
    expect(adopted).toEqual(creation === undefined ? ['name 50'] : []);
    expect((await first.store.listDeclarations(keys)).keys).toHaveLength(100);
    expect(await first.store.countKeys()).toBe(100);
    expect((await second.declare(keys)).changed).toEqual([]);
  });
}
