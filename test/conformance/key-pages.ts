import { expect, onTestFinished, test } from 'vitest';
import type { KeyFilter } from '../../src/domain/ports/key-store.ts';
import type { ApiKey } from '../../src/domain/keys/api-key.ts';
import type { Engine } from '../../src/storage/engine.ts';
import type { Store } from '../../src/storage/store.ts';
import { joinStore, key, startMs } from './store.ts';

/** The names of the keys, the oldest first; the ids are `key_A0`, `key_A1`, … */
const names = [
  'Team Alpha',
  'team_alpha',
  'team-beta',
  '100% load',
  '1000 load',
  String.raw`back\slash`,
  'Löwe',
  "it's ? :x ?1",
];

/** What the search for keys must do over every engine. */
export function describeKeyPages(engineName: string, open: () => Promise<Engine>): void {
  /** A store with these keys. */
  const setUp = async (changes: readonly Partial<ApiKey>[]): Promise<Store> => {
    const engine = await open();
    onTestFinished(() => engine.close());
    const store = joinStore(engine);
    for (const [index, change] of changes.entries()) {
      const made = {
        ...key,
        id: `key_A${index}`,
        createdAtMs: startMs + index,
        hasBalance: false,
        ...change,
      };
      await store.createKey(made, `hash ${index}`, null);
    }
    return store;
  };
  const find = async (store: Store, filter: KeyFilter): Promise<readonly string[] | undefined> =>
    (await store.listKeys(filter, 100, null))?.keys.map((found) => found.name);

  test(`${engineName}: finds keys by a part of the name or the beginning of the id, in upper or lower case`, async () => {
    const store = await setUp(names.map((name) => ({ name })));
    for (const [search, expected] of [
      ['TEAM', ['team-beta', 'team_alpha', 'Team Alpha']],
      ['alpha', ['team_alpha', 'Team Alpha']],
      ['key_a0', ['Team Alpha']],
      ['KEY_A0', ['Team Alpha']],
      // A part of an id that is not its beginning finds nothing.
      ['ey_A0', []],
      ['LOAD', ['1000 load', '100% load']],
      ['Lö', ['Löwe']],
      ['löWE', ['Löwe']],
      ["' OR 1 = 1", []],
      ['? :x ?1', ["it's ? :x ?1"]],
      ['', names.toReversed()],
    ] as const)
      expect([search, await find(store, { search })]).toEqual([search, expected]);
  });

  test(`${engineName}: finds the wildcards of LIKE as plain characters`, async () => {
    const store = await setUp(names.map((name) => ({ name })));
    for (const [search, expected] of [
      ['%', ['100% load']],
      ['100%', ['100% load']],
      ['m_a', ['team_alpha']],
      ['\\', [String.raw`back\slash`]],
      [String.raw`k\s`, [String.raw`back\slash`]],
      [String.raw`\%`, []],
      ['key%A0', []],
      ['keyxA0', []],
    ] as const)
      expect([search, await find(store, { search })]).toEqual([search, expected]);
  });

  test(`${engineName}: finds keys by their state, of which each key has one`, async () => {
    const store = await setUp([
      { name: 'open' },
      { name: 'later', expiresAt: startMs + 1 },
      { name: 'now', expiresAt: startMs },
      { name: 'both', expiresAt: startMs - 1 },
      { name: 'ended' },
    ]);
    for (const id of ['key_A3', 'key_A4']) await store.revokeKey(id, startMs);
    expect(await find(store, { state: 'active' })).toEqual(['later', 'open']);
    expect(await find(store, { state: 'expired' })).toEqual(['now']);
    expect(await find(store, { state: 'revoked' })).toEqual(['ended', 'both']);
    expect(await find(store, { state: 'revoked', search: 'E' })).toEqual(['ended']);
    expect(await find(store, { state: 'expired', search: 'e' })).toEqual([]);
  });

  test(`${engineName}: has each found key on one page, also behind a key that is not found`, async () => {
    const store = await setUp(
      Array.from({ length: 11 }, (_, index) => ({ name: index % 2 === 0 ? 'even' : 'odd' })),
    );
    const sizes: number[] = [];
    const ids: string[] = [];
    for (let before: string | null = null; ;) {
      const page: Awaited<ReturnType<Store['listKeys']>> = await store.listKeys(
        { search: 'EVEN' },
        4,
        before,
      );
      sizes.push(page?.keys.length ?? 0);
      ids.push(...(page?.keys ?? []).map(({ id }) => id));
      before = page?.next ?? null;
      if (before === null) break;
    }
    expect(sizes).toEqual([4, 2]);
    expect(ids).toEqual(['key_A10', 'key_A8', 'key_A6', 'key_A4', 'key_A2', 'key_A0']);
    expect(await store.listKeys({ search: 'even' }, 1, 'key_A3')).toMatchObject({
      keys: [{ id: 'key_A2' }],
      next: 'key_A2',
    });
    expect(await store.listKeys({ search: 'even' }, 1, 'key_none')).toBeNull();
  });
}
