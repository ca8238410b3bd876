import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { keepDeclarations } from '../../src/background/keep-declarations.ts';
import type { DeclaredKey } from '../../src/domain/keys/declared-key.ts';
import type { DeclaredHashes } from '../../src/domain/ports/key-store.ts';
import { createFakeClock } from '../support/fake-clock.ts';

function keyOf(name: string): DeclaredKey {
  return {
    name,
    hash: `hash of ${name}`,
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
  };
}

const retryMs = 5_000;
const storeLimitMs = 10_000;

/** Declarations over a store whose writes the test ends, and what the directory and the log got. */
function start(ready: Promise<void> = Promise.resolve()) {
  const clock = createFakeClock();
  const writes: { readonly names: readonly string[]; readonly end: PromiseWithResolvers<void> }[] = [];
  const log: string[] = [];
  const given: DeclaredHashes[] = [];
  const declarations = keepDeclarations({
    clock,
    ready,
    directory: { declare: (declared) => void given.push(declared) },
    async store(keys) {
      const end = Promise.withResolvers<void>();
      writes.push({ names: keys.map(({ name }) => name), end });
      await end.promise;
      const changed = keys.map(({ name }) => name);
      return { changed, removed: ['gone'], renamed: [], adopted: [], unfunded: [], refused: [] };
    },
    onFault: (message, error) => void log.push(`${message}: ${String(error)}`),
    onChange: ({ changed, removed }) => void log.push(`changed ${changed.join()}, removed ${removed.join()}`),
  });
  const lastGiven = (): DeclaredHashes => {
    const last = given.at(-1);
    if (last === undefined) throw new Error('nothing was declared');
    return last;
  };
  return { clock, declarations, writes, log, given, lastGiven };
}

/** Lets promises that are settled already have their effects. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await setImmediate();
}

describe('declared keys', () => {
  test('are declared at once, and are stored when the database is open', async () => {
    const open = Promise.withResolvers<void>();
    const { declarations, writes, log, lastGiven } = start(open.promise);
    declarations.declare([keyOf('bob')]);
    expect([...lastGiven().hashes]).toEqual(['hash of bob']);
    await turns();
    expect(writes).toEqual([]);
    open.resolve();
    await turns();
    expect(writes.map(({ names }) => names)).toEqual([['bob']]);
    writes[0]?.end.resolve();
    expect(await declarations.stored()).toBe(true);
    expect(await lastGiven().stored).toBe(true);
    expect(log).toEqual(['changed bob, removed gone']);
  });

  test('of a later config are stored after those of an earlier one, and those in between not at all', async () => {
    const { declarations, writes } = start();
    declarations.declare([keyOf('first')]);
    await turns();
    declarations.declare([keyOf('second')]);
    declarations.declare([keyOf('third')]);
    await turns();
    expect(writes.map(({ names }) => names)).toEqual([['first']]);
    writes[0]?.end.resolve();
    await turns();
    expect(writes.map(({ names }) => names)).toEqual([['first'], ['third']]);
  });

  test('that a later config replaced before they were stored are waited for until those of that config are', async () => {
    const { declarations, writes, lastGiven } = start();
    declarations.declare([keyOf('first')]);
    await turns();
    declarations.declare([keyOf('bob')]);
    const superseded = lastGiven().stored;
    const answers: boolean[] = [];
    void superseded.then((isStored) => answers.push(isStored));
    declarations.declare([keyOf('bob'), keyOf('eve')]);
    writes[0]?.end.reject(new Error('disk full'));
    await turns();
    expect([writes.length, answers]).toEqual([2, []]);
    writes[1]?.end.resolve();
    await turns();
    expect(answers).toEqual([true]);
    expect(await declarations.stored()).toBe(true);
  });

  test('that were being stored when the gateway was stopped are waited for no longer', async () => {
    const { declarations, writes, lastGiven } = start();
    declarations.declare([keyOf('first')]);
    declarations.declare([keyOf('second')]);
    const { stored } = lastGiven();
    declarations.stop();
    expect(await stored).toBe(true);
    expect(writes).toEqual([]);
  });

  test('that can not be stored are tried again, until they are', async () => {
    const { clock, declarations, writes, log, lastGiven } = start();
    declarations.declare([keyOf('bob')]);
    await turns();
    writes[0]?.end.reject(new Error('disk full'));
    expect(await declarations.stored()).toBe(false);
    expect(await lastGiven().stored).toBe(false);
    expect(log).toEqual(['declared keys could not be stored: Error: disk full']);
    clock.advance(retryMs);
    await turns();
    writes[1]?.end.resolve();
    await turns();
    expect(await lastGiven().stored).toBe(true);
    expect(clock.scheduled).toBe(0);
  });

  test('leave the cache of all keys alone while the database refuses them', async () => {
    const { clock, declarations, writes, given, lastGiven } = start();
    declarations.declare([keyOf('bob')]);
    for (let tries = 0; tries < 5; tries++) {
      await turns();
      writes[tries]?.end.reject(new Error('disk full'));
      await turns();
      // Each declaration empties the cache of the directory.
      expect(given).toHaveLength(1);
      expect(await lastGiven().stored).toBe(false);
      clock.advance(retryMs);
    }
    await turns();
    expect(writes).toHaveLength(6);
    writes[5]?.end.resolve();
    await turns();
    expect(given).toHaveLength(2);
    expect(await lastGiven().stored).toBe(true);
  });

  test('do not keep requests waiting for a database that hangs, and are found when it answers late', async () => {
    const { clock, declarations, writes, lastGiven } = start();
    declarations.declare([keyOf('bob')]);
    await turns();
    clock.advance(storeLimitMs);
    expect(await lastGiven().stored).toBe(false);
    writes[0]?.end.resolve();
    await turns();
    expect(await lastGiven().stored).toBe(true);
  });

  test('are not tried again after the end, nor where the database could not be opened', async () => {
    const ended = start();
    ended.declarations.declare([keyOf('bob')]);
    await turns();
    ended.declarations.stop();
    ended.writes[0]?.end.reject(new Error('closed'));
    await turns();
    expect([ended.clock.scheduled, ended.log]).toEqual([0, []]);

    const unopened = start(Promise.reject(new Error('not a database')));
    unopened.declarations.declare([keyOf('bob')]);
    expect(await unopened.declarations.stored()).toBe(false);
    await turns();
    expect([unopened.clock.scheduled, unopened.log]).toEqual([0, []]);
  });
});
