import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { OpenedRecord, Outcome, SettledRecord } from '../../src/domain/money/consumption.ts';
import { free, noTokens } from '../../src/domain/money/pricing.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { maxNanos } from '../../src/shared/money.ts';
import { modelPrice } from '../support/model-price.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import { requestIdFor } from '../support/request-ids.ts';
import { beginningOf, openedRecord } from '../support/stored-rows.ts';
import type { PipelineHarness } from '../support/pipeline-harness.ts';

const price = modelPrice({
  input: 1_000_000,
  cachedInput: 500_000,
  cacheWrite: 2_000_000,
  output: 3_000_000,
});
const usage = {
  ...noTokens,
  inputTokens: 10,
  cachedInputTokens: 2,
  cacheWriteTokens: 3,
  outputTokens: 7,
  reasoningTokens: 0,
  totalTokens: 17,
};
/** What that usage costs: a nano-dollar for a token of plain input. */
const cost = 5 + 1 + 3 * 2 + 7 * 3;

let pipeline: PipelineHarness;
beforeEach(async () => void (pipeline = await openPipeline(price, 100)));
afterEach(() => pipeline.close());

/** Opens and settles a record as it is told, whatever that may mean. */
async function write(
  keyId: string,
  settled: Partial<SettledRecord>,
  opened: Partial<OpenedRecord> = {},
): Promise<string> {
  const id = requestIdFor(randomUUID());
  const record: OpenedRecord = {
    ...openedRecord,
    requestId: id,
    keyId,
    mode: 'stream',
    queuedMs: 1,
    price,
    hold: { nanos: 20, leastNanos: 1 },
    ...opened,
  };
  await pipeline.store.open(record);
  await pipeline.store.settle({
    requestId: id,
    begun: beginningOf(record),
    outcome: 'completed',
    upstream: null,
    attempts: [],
    status: 200,
    usage,
    usageSource: 'upstream',
    price: null,
    chargeNanos: cost,
    firstTextMs: 1,
    totalMs: 2,
    ...settled,
  });
  return id;
}

describe('a record is verified by its outcome', () => {
  const counted = { usageSource: 'counted' } as const;
  const unseen = { firstTextMs: null };

  test.each<[string, Partial<SettledRecord>]>([
    ['completed, at its price', {}],
    ['completed, without tokens', { usage: { ...usage, ...noTokens }, chargeNanos: 0 }],
    ['completed, counted and cut at its hold', { ...counted, chargeNanos: 20 }],
    ['broken off after text, at its price', { outcome: 'upstream_truncated' }],
    ['broken off before text, for nothing', { outcome: 'idle_timeout', ...unseen, chargeNanos: 0 }],
    ['left, at its price', { outcome: 'client_closed' }],
    ['left, for nothing', { outcome: 'client_closed', chargeNanos: 0 }],
    ['left before text, at its price', { outcome: 'client_closed', ...unseen, ...counted }],
    ['of the gateway’s own fault, for nothing', { outcome: 'server_error', chargeNanos: 0 }],
  ])('%s, is sound', async (_name, settled) => {
    await write(await pipeline.addKey(1_000_000), settled);
    expect(await verifyLedger(pipeline.books)).toMatchObject({ imbalanceNanos: 0, faults: [] });
  });

  test.each<[string, Partial<SettledRecord>]>([
    ['completed, for nothing', { chargeNanos: 0 }],
    ['incomplete, for nothing', { outcome: 'incomplete', chargeNanos: 0 }],
    ['completed, for less', { chargeNanos: cost - 1 }],
    ['completed, for more', { chargeNanos: cost + 1 }],
    ['completed, cut at its hold though the upstream counted', { chargeNanos: 20 }],
    ['broken off after text, for nothing', { outcome: 'upstream_failed', chargeNanos: 0 }],
    ['broken off before text, at its price', { outcome: 'idle_timeout', ...unseen }],
    ['left, for less', { outcome: 'client_closed', chargeNanos: 1 }],
    ['of the gateway’s own fault, at its price', { outcome: 'server_error' }],
    ['without usage, for something', { usage: null, usageSource: 'none', chargeNanos: 1 }],
  ])('%s, is a fault', async (_name, settled) => {
    const requestId = await write(await pipeline.addKey(1_000_000), settled);
    const { faults } = await verifyLedger(pipeline.books);
    expect(faults).toEqual([`${requestId}: its charge is not what its outcome and its tokens cost`]);
  });

  test.each<[Outcome, number, number, boolean]>([
    ['completed', 200, 50, true],
    ['completed', 404, 0, true],
    ['upstream_truncated', 200, 0, true],
    ['client_closed', 200, 50, true],
    ['client_closed', 499, 0, true],
    ['total_timeout', 200, 50, true],
    ['total_timeout', 504, 0, true],
    ['drained', 200, 50, true],
    ['crashed', 200, 50, true],
    ['idle_timeout', 200, 0, true],
    ['server_error', 200, 0, true],
    ['client_closed', 200, 0, false],
    ['client_closed', 499, 50, false],
    ['total_timeout', 200, 0, false],
    ['upstream_truncated', 200, 50, false],
    ['completed', 200, 0, false],
    ['completed', 404, 50, false],
    ['completed', 200, 49, false],
  ])('%s as passed on with %i for %i nano-USD is sound: %s', async (outcome, status, chargeNanos, sound) => {
    const passed = { protocol: 'passthrough', mode: 'sync', price: { ...free, request: 50 } } as const;
    const settled = { usage: null, usageSource: 'none', firstTextMs: null } as const;
    await write(await pipeline.addKey(1_000_000), { ...settled, outcome, status, chargeNanos }, passed);
    expect((await verifyLedger(pipeline.books)).faults).toHaveLength(sound ? 0 : 1);
  });
});

describe('what a key has spent', () => {
  /** A request with a price of its own, since no tokens cost so much. */
  const spend = (keyId: string, nanos: number): Promise<string> =>
    write(
      keyId,
      { usage: null, usageSource: 'none', chargeNanos: nanos },
      {
        protocol: 'passthrough',
        mode: 'sync',
        price: { ...free, request: nanos },
        hold: { nanos: 0, leastNanos: 0 },
      },
    );

  test.each([null, 1_000])('stays an exact number, and the ledger adds up (balance %s)', async (balance) => {
    const keyId = await pipeline.addKey(balance);
    const account = async () => (await pipeline.store.accounts([keyId])).get(keyId);
    await spend(keyId, maxNanos - 10);
    expect(pipeline.faults).toEqual([]);
    const last = await spend(keyId, 25);
    expect(pipeline.faults).toEqual(['a charge was cut: its key has spent as much as can be kept']);
    const full = {
      balanceNanos: balance === null ? null : balance - maxNanos,
      heldNanos: 0,
      spentNanos: maxNanos,
    };
    expect(await account()).toEqual(full);
    expect(await pipeline.store.findRecord(last, keyId)).toMatchObject({
      chargeNanos: 10,
      unbookedNanos: 15,
    });
    await spend(keyId, maxNanos);
    expect(await account()).toEqual(full);
    expect(await verifyLedger(pipeline.books)).toMatchObject({ imbalanceNanos: 0, faults: [] });
  });
});
