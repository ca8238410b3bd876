import { describe, expect, test } from 'vitest';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { month, openStore } from '../support/usage-scene.ts';

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

  test('that was changed by hand is a fault of the ledger', async () => {
    const { engine, use } = await openStore(openTestEngine(':memory:'));
    await use({}, { chargeNanos: 5, usage: null });
    await engine.run([{ sql: 'UPDATE usage_hours SET charge = charge + 2', values: [] }]);
    const { faults, imbalanceNanos } = await verifyLedger(createLedgerAudit(engine));
    expect(faults).toContain('key_a: spent 5, but its usage says 7');
    expect(imbalanceNanos).toBe(2);
  });
});
