import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createMigrationTable, findPending } from '../../src/storage/migration.ts';
import { migrations } from '../../src/storage/sqlite/migrations.ts';
import { fillDatabase, keyIdOf } from '../support/filled-database.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { compared, month, openStore, startMs } from '../support/usage-scene.ts';

const hourMs = 3_600_000;

describe('usage', () => {
  test('has sums over keys that no number holds, and refuses sums of tokens that it can not give exactly', async () => {
    const { addKey, use, usage } = await openStore(openTestEngine(':memory:'));
    for (const keyId of ['key_b', 'key_c', 'key_d']) {
      await addKey(keyId);
      await use({ keyId }, { chargeNanos: Number.MAX_SAFE_INTEGER });
    }
    const page = await usage.usage({ ...month, by: ['day'] });
    expect(page?.rows).toMatchObject([{ requests: 3, chargeNanos: 3n * BigInt(Number.MAX_SAFE_INTEGER) }]);
    const tokens = { cachedInputTokens: 0, cacheWriteTokens: 0, outputTokens: 0, reasoningTokens: 0 };
    const inputTokens = Number.MAX_SAFE_INTEGER;
    const usages = { ...tokens, inputTokens, totalTokens: inputTokens };
    for (const keyId of ['key_b', 'key_c']) await use({ keyId }, { chargeNanos: 0, usage: usages });
    await expect(usage.usage({ ...month, by: [] })).rejects.toThrow(RangeError);
    expect((await usage.usage({ ...month, by: ['key'] }))?.rows).toHaveLength(3);
  });

  test.each([
    '',
    'x',
    Buffer.from('{}').toString('base64url'),
    Buffer.from('[]').toString('base64url'),
    Buffer.from('["key_a"]').toString('base64url'),
    Buffer.from('[1,"key_a","more"]').toString('base64url'),
    Buffer.from(JSON.stringify([1, 'a\0'])).toString('base64url'),
    'A'.repeat(20_000),
  ])('has no page behind what is no cursor of the query: %j', async (after) => {
    const { usage } = await openStore(openTestEngine(':memory:'));
    expect(await usage.usage({ ...month, after })).toBeNull();
  });

  test('of a database of the earlier version is that of its records, and what keys spent beyond them', async () => {
    const file = join(makeTemporaryFolder(), 'textgate.db');
    const database = new DatabaseSync(file);
    database.exec(createMigrationTable());
    const earlier = migrations.slice(0, 15);
    for (const { number, name, statements, checksum } of findPending(earlier, new Map())) {
      for (const statement of statements) database.exec(statement);
      database.prepare('INSERT INTO migrations VALUES (?, ?, ?)').run(number, name, checksum);
    }
    fillDatabase(file, { keys: 2, records: 20, startMs });
    // As a fold and a removal leave it.
    database.exec(
      `PRAGMA foreign_keys = OFF; DELETE FROM records WHERE key_id = '${keyIdOf(0)}' AND created_at < ${startMs + 6}`,
    );
    database.close();
    const { engine, usage } = await openStore(openTestEngine(file));
    const { found, expected } = await compared(engine);
    expect(found).toEqual(expected);
    const before = await usage.usage({ ...month, by: ['hour', 'key', 'model'], fromMs: 0, toMs: hourMs });
    expect(before?.rows).toMatchObject([
      { startMs: 0, keyId: keyIdOf(0), model: '', requests: 0, chargeNanos: 3n * 30_000n },
    ]);
    expect(
      (await verifyLedger(createLedgerAudit(engine))).faults.filter((fault) => fault.includes('usage')),
    ).toEqual([]);
  });

  test('of a version without groups is kept, as that of no group, also where whole months were rolled up', async () => {
    const file = join(makeTemporaryFolder(), 'textgate.db');
    const database = new DatabaseSync(file);
    database.exec(createMigrationTable());
    const earlier = migrations.slice(
      0,
      migrations.findIndex((step) => step.name.includes('usage by groups')),
    );
    for (const { number, name, statements, checksum } of findPending(earlier, new Map())) {
      for (const statement of statements) database.exec(statement);
      database.prepare('INSERT INTO migrations VALUES (?, ?, ?)').run(number, name, checksum);
    }
    fillDatabase(file, { keys: 2, records: 20, startMs });
    // A month that only the rollup has: rows of its hours would be read otherwise.
    const aprilMs = Date.UTC(2027, 3);
    database.exec(
      `INSERT INTO usage_rollups VALUES ('month:key,model,upstream,outcome,tag', ${aprilMs}, '${keyIdOf(1)}', 'm', 'u', 'completed', 'search',
         7, 1, 0, 0, 2, 0, 11);
       INSERT INTO usage_periods VALUES ('month', ${aprilMs}, 'rolled', 0, 0)`,
    );
    database.close();
    const { engine, usage } = await openStore(openTestEngine(file));
    const { found, expected } = await compared(engine);
    expect(found).toEqual(expected);
    const april = { ...month, by: ['key', 'group', 'tag'], fromMs: aprilMs, toMs: startMs } as const;
    const rows = [{ keyId: keyIdOf(1), group: null, tag: 'search', requests: 7, chargeNanos: 11n }];
    expect((await usage.usage(april))?.rows).toMatchObject(rows);
    expect((await usage.usage({ ...april, where: { group: null } }))?.rows).toMatchObject(rows);
    expect((await usage.usage({ ...april, where: { group: 'team-a' } }))?.rows).toEqual([]);
  });

  test('that was changed by hand is a fault of the ledger', async () => {
    const { engine, use } = await openStore(openTestEngine(':memory:'));
    await use({}, { chargeNanos: 5, usage: null });
    await engine.run([{ sql: 'UPDATE usage_hours SET charge = charge + 2', values: [] }]);
    const { faults, imbalanceNanos } = await verifyLedger(createLedgerAudit(engine));
    expect(faults).toContain('key_a: spent 5, but its usage says 7');
    expect(imbalanceNanos).toBe(2);
  });
});
