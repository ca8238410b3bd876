import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { mintKey } from '../../src/domain/keys/api-key.ts';
import type { ApiKey } from '../../src/domain/keys/api-key.ts';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import { hashKey } from '../../src/shared/digest.ts';
import { createKeyDirectory } from '../../src/storage/keys/key-directory.ts';
import { createFakeClock } from '../support/fake-clock.ts';

/** The bound of look-ups of unknown keys, as docs/operators and the code have it. */
const maxUnknownLookUps = 64;

const made = (number: number) => mintKey(Buffer.alloc(44, `${number} `));

/** A directory over a store that answers when the test says so, and the hashes that were looked up in it. */
function startDirectory(takesImported?: () => boolean) {
  const clock = createFakeClock();
  const keys = new Map<string, ApiKey>();
  const lookedUp: string[] = [];
  const answers: (() => void)[] = [];
  const state: { holdsBack: boolean; fault: Error | null } = { holdsBack: false, fault: null };
  const faults: string[] = [];
  let shed = 0;
  const directory = createKeyDirectory(
    {
      async findKeyByHash(hash) {
        lookedUp.push(hash);
        const read = keys.get(hash) ?? null;
        if (state.holdsBack) await new Promise<void>((resolve) => answers.push(resolve));
        if (state.fault !== null) throw state.fault;
        return read;
      },
      async findKeyById(id) {
        lookedUp.push(id);
        const read = [...keys.values()].find((key) => key.id === id) ?? null;
        if (state.holdsBack) await new Promise<void>((resolve) => answers.push(resolve));
        if (state.fault !== null) throw state.fault;
        return read;
      },
    },
    clock,
    {
      onFault: (message) => void faults.push(message),
      onShed: () => void shed++,
      ...(takesImported === undefined ? {} : { takesImported }),
    },
  );
  const add = (secret: string, isDeclared = false): void => {
    const limits = {};
    const key: ApiKey = {
      id: `key_${secret.slice(6, 18)}`,
      name: 'x',
      createdAtMs: 0,
      limits,
      models: null,
      allowFrom: null,
      lowBalanceNanos: null,
      tags: [],
      expiresAt: null,
      budget: null,
      group: null,
      weight: 1,
      joinRetriesMs: null,
      revokedAtMs: null,
      hasBalance: false,
      compatibility: {},
      isDeclared,
    };
    keys.set(hashKey(secret), key);
  };
  return { directory, clock, add, keys, lookedUp, answers, state, faults, shed: () => shed };
}

describe('a flood of guessed keys', () => {
  test('makes a bounded number of look-ups at a time, and is refused as overload beyond that', async () => {
    const { directory, state, lookedUp, answers, shed } = startDirectory();
    state.holdsBack = true;
    const found = Array.from({ length: 5_000 }, (_, number) => directory.find(made(number).secret));
    expect(lookedUp).toHaveLength(maxUnknownLookUps);
    expect(shed()).toBe(5_000 - maxUnknownLookUps);
    expect(await found.at(-1)).toMatchObject({ code: 'overloaded', retryAfterMs: 1_000 });
    for (const answer of answers) answer();
    expect(await found[0]).toBeNull();
    void directory.find(made(9_999).secret);
    expect(lookedUp).toHaveLength(maxUnknownLookUps + 1);
  });

  test('does not keep out a key that was valid before, even when it is not in the cache any more', async () => {
    const { directory, clock, add, state, lookedUp, answers } = startDirectory();
    const { id, secret } = made(1);
    add(secret);
    expect(await directory.find(secret)).toMatchObject({ id });
    clock.advance(60_000);
    // lru-cache has a clock of its own: what is forgotten is looked up again, as after its time.
    directory.forgetAll();
    state.holdsBack = true;
    for (let number = 100; number < 1_000; number++) void directory.find(made(number).secret);
    const again = directory.find(secret);
    expect(lookedUp.at(-1)).toBe(hashKey(secret));
    for (const answer of answers) answer();
    expect(await again).toMatchObject({ id });
  });

  test('with wrong checksums makes no look-up', async () => {
    const { directory, lookedUp } = startDirectory();
    for (let number = 0; number < 1_000; number++)
      expect(await directory.find(`${made(number).secret.slice(0, -6)}000000`)).toBeNull();
    expect(lookedUp).toEqual([]);
  });

  test('of one and the same key makes one look-up', async () => {
    const { directory, state, lookedUp, answers } = startDirectory();
    state.holdsBack = true;
    const found = Array.from({ length: 1_000 }, async () => directory.find(made(1).secret));
    expect(lookedUp).toHaveLength(1);
    answers[0]?.();
    expect(new Set(await Promise.all(found))).toEqual(new Set([null]));
  });
});

describe('keys that were imported', () => {
  const imported = (number: number): string =>
    `sk-${Buffer.from(hashKey(String(number)), 'hex')
      .toString('base64url')
      .slice(0, 22)}`;

  test('are looked up where the config takes them, and are refused at once where it does not', async () => {
    let takesImported = true;
    const { directory, add, lookedUp } = startDirectory(() => takesImported);
    add(imported(1));
    expect(directory.couldBeKey(imported(1))).toBe(true);
    expect(await directory.find(imported(1))).not.toBeNull();
    takesImported = false;
    expect(directory.couldBeKey(imported(1))).toBe(false);
    expect(await directory.find(imported(1))).toBeNull();
    expect(lookedUp).toHaveLength(1);
  });

  test('share the bound of look-ups with all other guesses', async () => {
    const { directory, state, lookedUp, answers, shed, add } = startDirectory(() => true);
    add(imported(0));
    expect(await directory.find(imported(0))).not.toBeNull();
    directory.forgetAll();
    state.holdsBack = true;
    const found = Array.from({ length: 5_000 }, (_, number) => directory.find(imported(number + 1)));
    expect(lookedUp).toHaveLength(1 + maxUnknownLookUps);
    expect(shed()).toBe(5_000 - maxUnknownLookUps);
    expect(await found.at(-1)).toMatchObject({ code: 'overloaded' });
    // The one that was valid before is not kept out.
    const again = directory.find(imported(0));
    for (const answer of answers) answer();
    expect(await again).toMatchObject({ name: 'x' });
  });

  test('have a form of their own: no other text costs a look-up', async () => {
    const { directory, lookedUp } = startDirectory(() => true);
    const others = [
      `${made(1).secret.slice(0, -6)}000000`,
      imported(1).slice(0, 19),
      imported(1).slice(1),
      `SK${imported(1).slice(2)}`,
      `sk-${'a1b2c3d4'.repeat(128)}`,
      `${imported(1)}é`,
    ];
    for (const other of others) expect(await directory.find(other)).toBeNull();
    expect(lookedUp).toEqual([]);
  });

  test('are refused if they can be guessed, but for those that the config declares', async () => {
    const { directory, add } = startDirectory(() => true);
    const weak = 'sk-my-example-key-for-production-1234';
    add(weak);
    expect(await directory.find(weak)).toBeNull();
    add(weak, true);
    directory.declare({ hashes: new Set([hashKey(weak)]), stored: Promise.resolve(true) });
    expect(await directory.find(weak)).not.toBeNull();
  });
});

describe('a key', () => {
  test('is found when it was issued before keys had a checksum', async () => {
    const { directory, add } = startDirectory();
    const old = made(3).secret.slice(0, -6);
    add(old);
    expect(await directory.find(old)).toMatchObject({ id: made(3).id });
  });

  test('is refused when it is revoked while it is looked up, whatever was read before', async () => {
    const { directory, add, keys, state, lookedUp, answers } = startDirectory();
    const { secret } = made(1);
    add(secret);
    state.holdsBack = true;
    const found = directory.find(secret);
    keys.delete(hashKey(secret));
    directory.forgetAll();
    const after = directory.find(secret);
    expect(lookedUp).toHaveLength(2);
    state.holdsBack = false;
    for (const answer of answers) answer();
    expect([await found, await after]).toEqual([null, null]);
    expect(await directory.find(secret)).toBeNull();
  });
});

describe('a declared key', () => {
  const secret = 'sk-Yq3vT9LmW0zKc7Rb1';
  const stored = Promise.resolve(true);

  test('is found in whatever form it has; other keys in such a form are refused without a look-up', async () => {
    const { directory, add, lookedUp } = startDirectory();
    add(secret, true);
    directory.declare({ hashes: new Set([hashKey(secret)]), stored });
    expect(await directory.find(secret)).toMatchObject({ isDeclared: true });
    for (let number = 0; number < 1_000; number++)
      expect(await directory.find(`sk-Yq3vT9LmW0zKc7Rb${number}0`)).toBeNull();
    expect(lookedUp).toEqual([hashKey(secret)]);
  });

  test('is not kept out by a flood of guesses, even before it was ever used', async () => {
    const { directory, add, state, answers } = startDirectory();
    add(secret, true);
    directory.declare({ hashes: new Set([hashKey(secret)]), stored });
    state.holdsBack = true;
    for (let number = 0; number < 1_000; number++) void directory.find(made(number).secret);
    const found = directory.find(secret);
    await setImmediate();
    for (const answer of answers) answer();
    expect(await found).toMatchObject({ isDeclared: true });
  });

  test('is looked up only once it is stored', async () => {
    const { directory, add, lookedUp } = startDirectory();
    const writing = Promise.withResolvers<boolean>();
    directory.declare({ hashes: new Set([hashKey(secret)]), stored: writing.promise });
    const found = directory.find(secret);
    await setImmediate();
    expect(lookedUp).toEqual([]);
    add(secret, true);
    writing.resolve(true);
    expect(await found).toMatchObject({ isDeclared: true });
  });

  test('is a 503, not a 401, while it can not be stored', async () => {
    const { directory } = startDirectory();
    directory.declare({ hashes: new Set([hashKey(secret)]), stored: Promise.resolve(false) });
    expect(await directory.find(secret)).toMatchObject({ code: 'storage_unavailable' });
  });

  test('is refused as soon as it is declared no more, whatever is cached and stored', async () => {
    const { directory, add } = startDirectory();
    const ours = made(1).secret;
    add(ours, true);
    directory.declare({ hashes: new Set([hashKey(ours)]), stored });
    expect(await directory.find(ours)).toMatchObject({ isDeclared: true });
    directory.declare({ hashes: new Set(), stored: new Promise(() => {}) });
    expect(await directory.find(ours)).toBeNull();
  });
});

test('the directory logs failed reads of keys once, and then once more with a count', async () => {
  const { directory, clock, state, faults } = startDirectory();
  state.fault = new StorageError('database is locked');
  for (let number = 0; number < 1_000; number++)
    expect(await directory.find(made(number).secret)).toMatchObject({ code: 'storage_unavailable' });
  expect(faults).toEqual(['keys could not be read']);
  clock.advance(10_000);
  await directory.find(made(1).secret);
  expect(faults.slice(1)).toEqual(['keys could not be read (and 999 times since the last such line)']);
});

describe('a key that is looked up by its id', () => {
  test('is found with why it can’t be used, if so', async () => {
    const { directory, clock, add, keys } = startDirectory();
    const { id, secret } = made(1);
    expect(await directory.findById(id)).toBeNull();
    add(secret);
    const fault = async (changes: Partial<ApiKey>): Promise<unknown> => {
      const [[hash, key]] = [...keys] as [[string, ApiKey]];
      keys.set(hash, { ...key, ...changes });
      return directory.findById(id);
    };
    expect(await fault({ expiresAt: clock.now() + 1 })).toMatchObject({ key: { id }, fault: null });
    expect(await fault({ expiresAt: clock.now() })).toMatchObject({ fault: 'expired' });
    expect(await fault({ revokedAtMs: clock.now() })).toMatchObject({ fault: 'revoked' });
  });

  test('is refused while the store can’t be read, and a declared one until the declarations are stored', async () => {
    const { directory, add, keys, state, faults } = startDirectory();
    const { id, secret } = made(1);
    add(secret, true);
    const stored = Promise.withResolvers<boolean>();
    directory.declare({ hashes: new Set(), stored: stored.promise });
    const found = directory.findById(id);
    await setImmediate();
    // The config declares it no longer: storing that revokes it.
    const [[hash, key]] = [...keys] as [[string, ApiKey]];
    keys.set(hash, { ...key, revokedAtMs: 1 });
    stored.resolve(true);
    expect(await found).toMatchObject({ fault: 'revoked' });
    directory.declare({ hashes: new Set(), stored: Promise.resolve(false) });
    expect(await directory.findById(id)).toMatchObject({ code: 'storage_unavailable' });
    expect(faults).toEqual([]);
    state.fault = new StorageError('the database is away');
    expect(await directory.findById(id)).toMatchObject({ code: 'storage_unavailable' });
    expect(faults).toEqual(['keys could not be read']);
  });
});
