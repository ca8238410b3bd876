import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { safeChanges } from '../../src/domain/audit/audit-line.ts';
import { nameOf } from '../../src/domain/audit/safe-text.ts';
import { declareKeys } from '../../src/operations/declare-keys.ts';
import { hashKey } from '../../src/shared/digest.ts';
import { createAuditTrail } from '../../src/storage/audit/audit-lines.ts';
import { ada, entries, entryOf, openAudit, startMs } from '../support/audit-scene.ts';
import type { AuditDatabase } from '../support/audit-scene.ts';
import { payingKey } from '../support/stored-rows.ts';
import { describeAuditChain } from './audit-chain.ts';
import { declared } from './declarations.ts';

/** What the audit must do over every engine. */
export function describeAudit(name: string, database: AuditDatabase): void {
  describe(`${name}: the lines of the audit`, () => {
    describeLines(database);
  });
  describeAuditChain(name, database);
}

function describeLines(database: AuditDatabase): void {
  test('are stored with the change that they are about, and not without it', async () => {
    const { store, lines } = await openAudit(database);
    await store.createKey(payingKey, 'hash', 5, ada);
    await expect(store.createKey(payingKey, 'hash', 5, ada)).rejects.toThrow(/api_keys|unique/i);
    expect(await store.updateKey('key_unknown', { name: 'x' }, ada)).toBeNull();
    expect(await store.createFirstKey({ ...payingKey, id: 'key_first' }, 'first', ada)).toBe(false);
    const credit = { keyId: payingKey.id, nanos: 7, reference: 'r' };
    for (const nanos of [7, 7, 8]) await store.credit({ ...credit, nanos }, ada);
    await store.credit({ ...credit, keyId: 'key_unknown' }, ada);
    for (const at of [1, 2]) await store.revokeKey(payingKey.id, startMs + at, ada);
    const found = await lines();
    expect(found.map(({ number, action, keyId }) => [number, action, keyId])).toEqual([
      [1, 'key.create', payingKey.id],
      [2, 'key.credit', payingKey.id],
      [3, 'key.revoke', payingKey.id],
    ]);
    expect(found[0]).toMatchObject({ createdAtMs: startMs, actor: ada, subject: payingKey.name, times: 1 });
  });

  test('of changes made at the same time say what was before each, and none is undone by another', async () => {
    const { store, join, lines } = await openAudit(database);
    await store.createKey({ ...payingKey, limits: { concurrency: 1 } }, 'hash', null, ada);
    const stores = [store, join(), join()] as const;
    const changeOf = (at: number) => (at < 6 ? { concurrency: at + 2 } : { tokensPerDay: at });
    await Promise.all(
      Array.from({ length: 9 }, (_, at) =>
        (stores[at % 3] ?? store).updateKey(payingKey.id, changeOf(at), ada),
      ),
    );
    const changes = (await lines()).slice(1).flatMap((line) => line.changes);
    expect((await lines()).map(({ number }) => number)).toEqual(
      Array.from({ length: 10 }, (_, at) => at + 1),
    );
    for (const [field, first] of [
      ['concurrency', '1'],
      ['tokensPerDay', null],
    ] as const) {
      const ofField = changes.filter((change) => change.field === field);
      expect(ofField.map(({ before }) => before)).toEqual(
        [first, ...ofField.map(({ after }) => after)].slice(0, -1),
      );
      const stored = (await store.findKeyById(payingKey.id))?.limits;
      expect(String(stored?.[field])).toBe(ofField.at(-1)?.after);
    }
  });

  test('have the secret of a rotated key as fingerprints, and the former one stays valid', async () => {
    const { store, lines } = await openAudit(database);
    await store.createKey({ ...payingKey, hasBalance: false }, hashKey('one'), null, ada);
    await store.rotateKey(payingKey.id, hashKey('two'), startMs + 1, ada);
    expect((await lines())[1]?.changes).toEqual([
      {
        field: 'secret',
        before: `sha256:${hashKey('one').slice(0, 12)}`,
        after: `sha256:${hashKey('two').slice(0, 12)}`,
      },
      { field: 'oldSecretUntil', before: null, after: new Date(startMs + 1).toISOString() },
    ]);
    expect((await store.findKeyByHash(hashKey('one')))?.id).toBe(payingKey.id);
  });

  test('of declared keys are one for each that is created, changed or revoked, by whichever of several processes', async () => {
    const { join, lines } = await openAudit(database);
    const declareAll = (limit: number, ...names: readonly string[]) => {
      const keys = names.map((name) => declared(name, hashKey(name), { limits: { concurrency: limit } }));
      const tools = { randomBytes, hash: hashKey, now: () => startMs };
      return Promise.allSettled([1, 2, 3].map(() => declareKeys(keys, { store: join(), ...tools })));
    };
    await declareAll(1, 'bob', 'eve');
    await declareAll(1, 'bob', 'eve');
    await declareAll(2, 'bob');
    await declareAll(2, 'bob', 'eve');
    const found = await lines();
    expect(found.map(({ action, subject, keyId }) => [action, subject, keyId?.length])).toEqual([
      ['key.create', 'bob', 16],
      ['key.create', 'eve', 16],
      ['key.revoke', 'eve', 16],
      ['key.change', 'bob', 16],
      ['key.change', 'eve', 16],
    ]);
    expect(found[3]?.changes).toEqual([{ field: 'concurrency', before: '1', after: '2' }]);
    expect(found[4]?.changes.map(({ field }) => field)).toEqual(['concurrency', 'revoked']);
    expect(new Set(found.map(({ actor }) => actor.way))).toEqual(new Set(['declared_keys']));
  });

  test('of a config are one, whichever of several processes loads it, and none where nothing differs', async () => {
    const { engine, lines } = await openAudit(database);
    const noteAll = async (after: string) => {
      const changes = safeChanges([{ field: 'limits', before: null, after }]);
      const compare = (before: string | null) => ({ after, changes: before === null ? [] : changes });
      const trails = [1, 2, 3].map(() => createAuditTrail(engine, () => startMs));
      await Promise.all(trails.map((trail) => trail.noteConfig({ ...ada, way: 'config' }, compare)));
    };
    for (const settings of ['a', 'a', 'b', 'b', 'a']) await noteAll(settings);
    expect((await lines()).map(({ action, changes }) => [action, changes[0]?.after])).toEqual([
      ['config.load', 'b'],
      ['config.load', 'a'],
    ]);
  });

  test('are found by time, actor, action, key and text, newest first, a page at a time', async () => {
    const { trail, pass } = await openAudit(database);
    for (const number of [1, 2, 3]) {
      await trail.add([
        { ...entryOf(number), actor: { ...ada, name: `ada ${number}` }, keyId: nameOf(`key_${number}`) },
      ]);
      pass(1_000);
    }
    await trail.add([
      {
        ...entryOf(4),
        action: 'key.change',
        changes: safeChanges([{ field: 'name', before: 'Bob', after: '100% <b>_\u202e Ключ' }]),
      },
    ]);
    const numbers = async (...[filter, limit, before]: Parameters<typeof trail.list>) =>
      (await trail.list(filter, limit, before)).lines.map(({ number }) => number);
    expect(await trail.list({}, 3, null)).toMatchObject({ lines: [{ number: 4 }, {}, {}], next: 2 });
    expect(await trail.list({}, 3, 2)).toMatchObject({ lines: [{ number: 1 }], next: null });
    expect(await numbers({ fromMs: startMs + 1_000, toMs: startMs + 3_000 }, 9, null)).toEqual([3, 2]);
    expect(await numbers({ actor: 'ada 2' }, 9, null)).toEqual([2]);
    expect(await numbers({ action: 'key.change' }, 9, null)).toEqual([4]);
    expect(await numbers({ keyId: 'key_3' }, 9, null)).toEqual([3]);
    expect(await numbers({ search: 'REQUEST' }, 9, null)).toEqual([4, 3, 2, 1]);
    for (const search of ['bob', '100% <b>_', '\u202e', 'Ключ'])
      expect(await numbers({ search }, 9, null)).toEqual([4]);
    for (const search of ['100%_', "' OR 1=1 --", '1key'])
      expect(await numbers({ search }, 9, null)).toEqual([]);
  });

  test('are neither changed nor removed', async () => {
    const { engine, trail } = await openAudit(database);
    await trail.add(entries(2));
    for (const sql of [
      "UPDATE audit_lines SET actor = 'eve'",
      'DELETE FROM audit_lines WHERE number = 2',
      'UPDATE audit_chain SET removed = 2',
    ])
      await expect(engine.run([{ sql, values: [] }])).rejects.toThrow(/append-only|not sealed/);
  });
}
