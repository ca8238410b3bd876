import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { sweepOrphans } from '../../src/background/monitor-ledger.ts';
import type { Account } from '../../src/domain/ports/accounts.ts';
import type { ApiKey } from '../../src/domain/keys/api-key.ts';
import type { OpenedRecord, SettledRecord } from '../../src/domain/money/consumption.ts';
import { free, noTokens } from '../../src/domain/money/pricing.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createStore } from '../../src/storage/store.ts';
import type { Store } from '../../src/storage/store.ts';
import { maxNanos } from '../../src/shared/money.ts';
import { requestIdFor, requestName } from '../support/request-ids.ts';
import { beginningOf } from '../support/stored-rows.ts';

export const startMs = 1_800_000_000_000;

/** One nano-USD for a token of input, in all prompts. */
const { above: _above, ...freePrice } = free;
const price = { ...freePrice, input: 1_000_000 };

export const key: ApiKey = {
  id: 'key_a',
  name: 'a',
  createdAtMs: startMs,
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
  revokedAtMs: null,
  hasBalance: true,
  compatibility: {},
  isDeclared: false,
};

/** The id of a request with a name, which arrived at the usual time or at another one. */
export function idOf(name: string, createdAtMs = startMs): string {
  return requestIdFor(name, createdAtMs);
}

export function opened(name: string, holdNanos = 0, leastNanos = 1): OpenedRecord {
  return {
    requestId: idOf(name),
    keyId: key.id,
    protocol: 'chat',
    mode: 'sync',
    model: 'm',
    upstream: 'u',
    tag: null,
    group: null,
    queuedMs: 0.4,
    price,
    hold: { nanos: holdNanos, leastNanos },
  };
}

export function settled(name: string, chargeNanos = 0): SettledRecord {
  return {
    requestId: idOf(name),
    begun: beginningOf(opened(name)),
    outcome: 'completed',
    upstream: null,
    attempts: [],
    status: 200,
    usage: { ...noTokens, inputTokens: chargeNanos, reasoningTokens: 0, totalTokens: chargeNanos },
    usageSource: 'upstream',
    price: null,
    chargeNanos,
    firstTextMs: null,
    totalMs: 2.6,
  };
}

/** One process's store; processes share the engine of a test. */
export function joinStore(engine: Engine, faults: string[] = []): Store {
  return createStore(engine, {
    nextId: () => randomUUID(),
    now: () => startMs,
    report: (message) => void faults.push(message),
  });
}

interface Bench {
  readonly engine: Engine;
  readonly store: Store;
  readonly faults: string[];
  readonly account: () => Promise<Account | undefined>;
}

/** What the store must do over every engine: the money in it is exact, whatever runs at once. */
export function describeStore(name: string, open: () => Promise<Engine>): void {
  /** A store with one key; at the end of every test its ledger must add up. */
  const setUp = async (balanceNanos: number | null): Promise<Bench> => {
    const engine = await open();
    onTestFinished(async () => {
      const { faults, imbalanceNanos } = await verifyLedger(createLedgerAudit(engine));
      await engine.close();
      expect([faults, imbalanceNanos]).toEqual([[], 0]);
    });
    const faults: string[] = [];
    const store = joinStore(engine, faults);
    await store.renewLease();
    await store.createKey({ ...key, hasBalance: balanceNanos !== null }, 'hash', balanceNanos);
    const account = async () => (await store.accounts([key.id])).get(key.id);
    return { engine, store, faults, account };
  };
  describe(`${name}: holds and settlements`, () => {
    describeSettlements(setUp);
  });
  describe(`${name}: forgotten beginnings`, () => {
    describeForgotten(setUp);
  });
  describe(`${name}: records`, () => {
    describePages(setUp);
  });
  describe(`${name}: credits`, () => {
    describeCredits(setUp);
  });
  describe(`${name}: owners`, () => {
    describeOwners(setUp);
  });

  test(`${name}: stores one first key of those that come at once, with an account, and none beside another key`, async () => {
    const engine = await open();
    onTestFinished(() => engine.close());
    const store = joinStore(engine, []);
    const made = await Promise.all(
      ['a', 'b', 'c'].map(async (id) =>
        store.createFirstKey({ ...key, id, name: id, hasBalance: false }, id),
      ),
    );
    expect(made.filter((isFirst) => isFirst)).toHaveLength(1);
    const first = ['a', 'b', 'c'].find((_, index) => made[index]);
    expect(await store.listKeys({}, 10, null)).toMatchObject({ keys: [{ id: first, createdAtMs: startMs }] });
    expect([...(await store.accounts(['a', 'b', 'c'])).keys()]).toEqual([first]);
    expect(await store.createFirstKey({ ...key, id: 'd' }, 'd')).toBe(false);
  });

  test(`${name}: stores an imported key once, with its balance, and none whose hash a key has or had`, async () => {
    const { store } = await setUp(null);
    const imported = (id: string, hash: string, nanos: number | null = null) =>
      store.importKey({ ...key, id, name: id, hasBalance: nanos !== null }, hash, nanos);
    expect(await store.findHolder('there')).toBeNull();
    const ids = await Promise.all(['b', 'c', 'd'].map((id) => imported(id, 'there', 7)));
    expect(new Set(ids).size).toBe(1);
    const id = ids[0] ?? '';
    expect(await store.findHolder('there')).toBe(id);
    expect(await store.findKeyByHash('there')).toMatchObject({ id, hasBalance: true });
    expect([...(await store.accounts(['b', 'c', 'd'])).values()]).toMatchObject([{ balanceNanos: 7 }]);
    await store.rotateKey(id, 'new', startMs);
    await store.revokeKey(id, startMs);
    for (const hash of ['there', 'new'])
      expect([await imported('e', hash, 9), await store.findHolder(hash)]).toEqual([id, id]);
    expect(await imported('f', 'hash', 9)).toBe(key.id);
    expect(await store.findKeyById('e')).toBeNull();
    expect([...(await store.accounts(['e', 'f'])).keys()]).toEqual([]);
  });

  test(`${name}: reads a key back as it was stored`, async () => {
    const { store } = await setUp(null);
    const full: ApiKey = {
      ...key,
      id: 'key_b',
      limits: { concurrency: 2, requestsPerMinute: 3, queueWaitMs: 0, tokensPerMinute: 4, tokensPerDay: 5 },
      models: ['a', 'b'],
      allowFrom: ['10.0.0.0/8', '2001:db8::1'],
      tags: ['search', 'chat:2'],
      expiresAt: startMs + 1,
      lowBalanceNanos: 9,
      weight: 3,
      joinRetriesMs: 1_500,
      compatibility: { sampling: 'strip' },
    };
    await store.createKey(full, 'other hash', 5);
    expect(await store.findKeyByHash('other hash')).toEqual(full);
    expect(await store.findKeyById('key_a')).toEqual({ ...key, hasBalance: false });
    expect(await store.updateKey('key_b', { joinRetriesMs: null })).toEqual({ ...full, joinRetriesMs: null });
    expect(await store.updateKey('key_b', { joinRetriesMs: 2_000 })).toEqual({
      ...full,
      joinRetriesMs: 2_000,
    });
  });

  test(`${name}: changes of a key's compatibility leave the other fields of it as they are`, async () => {
    const { store } = await setUp(null);
    for (const [changed, expected] of [
      [{ sampling: 'strict' }, { sampling: 'strict' }],
      [{ unknownFields: 'ignore' }, { sampling: 'strict', unknownFields: 'ignore' }],
      [
        { sampling: 'strip', responsesDone: true },
        { sampling: 'strip', unknownFields: 'ignore', responsesDone: true },
      ],
    ] as const)
      expect((await store.updateKey('key_a', { compatibility: changed }))?.compatibility).toEqual(expected);
  });
}

function describeSettlements(setUp: (balanceNanos: number | null) => Promise<Bench>): void {
  test('sets a hold aside, and gives back what is not charged', async () => {
    const { store, account } = await setUp(1_000);
    expect(await store.open(opened('a', 700))).toEqual({ granted: true, holdNanos: 700, balanceNanos: 300 });
    expect(await account()).toEqual({ balanceNanos: 300, heldNanos: 700, spentNanos: 0 });
    await store.settle(settled('a', 40));
    expect(await account()).toEqual({ balanceNanos: 960, heldNanos: 0, spentNanos: 40 });
    expect(await store.findRecord(idOf('a'), key.id)).toMatchObject({
      outcome: 'completed',
      totalMs: 3,
      chargeNanos: 40,
    });
  });

  test('charges a key without a balance, and holds nothing for it', async () => {
    const { store, account } = await setUp(null);
    expect(await store.open(opened('a', 700))).toEqual({
      granted: true,
      holdNanos: null,
      balanceNanos: null,
    });
    await store.settle(settled('a', 40));
    expect(await account()).toEqual({ balanceNanos: null, heldNanos: 0, spentNanos: 40 });
  });

  test('keeps a hold of more than 2^31 nano-USD exact', async () => {
    const { store, account } = await setUp(2 ** 40);
    await store.open(opened('a', 2 ** 33 + 1));
    expect((await account())?.heldNanos).toBe(2 ** 33 + 1);
    await store.settle(settled('a', 2 ** 32 + 3));
    expect((await account())?.spentNanos).toBe(2 ** 32 + 3);
  });

  test('grants no hold too many to requests that come at once, and writes no record for the others', async () => {
    const { store, account } = await setUp(1_000);
    const reservations = await Promise.all(
      Array.from({ length: 50 }, (_, number) => store.open(opened(`req_${number}`, 300, 300))),
    );
    expect(reservations.filter(({ granted }) => granted)).toHaveLength(3);
    expect(await account()).toEqual({ balanceNanos: 100, heldNanos: 900, spentNanos: 0 });
    expect(await store.countOpen()).toBe(3);
  });

  test('settles a record once: a second settlement is an error, and changes nothing', async () => {
    const { store, account } = await setUp(1_000);
    await store.open(opened('a', 100));
    await store.settle(settled('a', 10));
    await expect(store.settle({ ...settled('a', 99), outcome: 'drained' })).rejects.toThrow(
      `no open record of ${idOf('a')}`,
    );
    expect(await account()).toEqual({ balanceNanos: 990, heldNanos: 0, spentNanos: 10 });
    expect(await store.isSettled(settled('a', 10))).toBe(true);
    expect(await store.isSettled(settled('a', 99))).toBe(false);
  });

  test('undoes nothing of the requests that begin at once with one whose id is taken', async () => {
    const { store, account } = await setUp(1_000);
    const begun = await Promise.allSettled(['a', 'b', 'a', 'c'].map((name) => store.open(opened(name, 100))));
    expect(begun.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    expect(await account()).toEqual({ balanceNanos: 700, heldNanos: 300, spentNanos: 0 });
    await Promise.all(['a', 'b', 'c'].map((name) => store.settle(settled(name, 10))));
    expect(await account()).toEqual({ balanceNanos: 970, heldNanos: 0, spentNanos: 30 });
  });

  test('charges once where the same settlement is offered many times at once', async () => {
    const { store, account } = await setUp(1_000);
    await store.open(opened('a', 100));
    const offers = await Promise.allSettled(Array.from({ length: 20 }, () => store.settle(settled('a', 10))));
    expect(offers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await account()).toEqual({ balanceNanos: 990, heldNanos: 0, spentNanos: 10 });
  });
}

/** Settlements whose beginnings the database has forgotten, as after a power failure or in another order. */
function describeForgotten(setUp: (balanceNanos: number | null) => Promise<Bench>): void {
  test('charges a request whose beginning is nowhere, once, and writes its whole record', async () => {
    const { store, faults, account } = await setUp(1_000);
    await store.settle(settled('a', 40));
    expect(await account()).toEqual({ balanceNanos: 960, heldNanos: 0, spentNanos: 40 });
    const { requestId, hold: _hold, queuedMs: _queued, ...begun } = opened('a');
    expect(await store.findRecord(requestId, key.id)).toMatchObject({
      ...begun,
      queuedMs: 0,
      outcome: 'completed',
      holdNanos: 0,
      chargeNanos: 40,
    });
    expect(faults).toEqual(['a record was settled whose beginning the database has lost']);
    await expect(store.settle(settled('a', 40))).rejects.toThrow('no open record');
    expect(await account()).toEqual({ balanceNanos: 960, heldNanos: 0, spentNanos: 40 });
  });

  test('keeps the hold of a forgotten beginning in its record, for the audit of a charge that was cut to it', async () => {
    const { store, account } = await setUp(1_000);
    const begun = beginningOf(opened('a', 30));
    const cut = { ...settled('a', 30), begun, usageSource: 'counted' } as const;
    await store.settle({ ...cut, usage: settled('a', 50).usage });
    expect(await store.findRecord(idOf('a'), key.id)).toMatchObject({ holdNanos: 30, chargeNanos: 30 });
    expect(await account()).toEqual({ balanceNanos: 970, heldNanos: 0, spentNanos: 30 });
  });

  test('tells how much of a charge is not booked, because its key has spent as much as can be kept', async () => {
    const { store, faults, account } = await setUp(null);
    for (const [name, charge, unbooked] of [
      ['a', maxNanos - 10, 0],
      ['b', 25, 15],
      ['c', 25, 25],
    ] as const) {
      await store.open(opened(name));
      expect(await store.settle(settled(name, charge))).toBe(unbooked);
      expect(await store.findRecord(idOf(name), key.id)).toMatchObject({ chargeNanos: charge - unbooked });
    }
    expect(await account()).toMatchObject({ spentNanos: maxNanos });
    expect(faults).toHaveLength(2);
  });

  test('grants no hold to a request whose id was settled with the last of the balance', async () => {
    const { store, account } = await setUp(100);
    await store.open(opened('a', 100));
    await store.settle(settled('a', 100));
    expect(await store.open(opened('a', 100))).toMatchObject({ granted: false });
    expect(await account()).toEqual({ balanceNanos: 0, heldNanos: 0, spentNanos: 100 });
  });

  test('gives the hold back, and keeps the charge, where a settlement overtook its beginning', async () => {
    const { store, account } = await setUp(1_000);
    await store.settle(settled('a', 40));
    await store.open(opened('a', 700));
    expect(await account()).toEqual({ balanceNanos: 260, heldNanos: 700, spentNanos: 40 });
    expect(await store.closeAsLost([idOf('a')])).toBe(1);
    expect(await account()).toEqual({ balanceNanos: 960, heldNanos: 0, spentNanos: 40 });
    expect(await store.findRecord(idOf('a'), key.id)).toMatchObject({
      outcome: 'completed',
      chargeNanos: 40,
    });
  });
}

/** Lists of records, of which the open ones are kept apart. */
function describePages(setUp: (balanceNanos: number | null) => Promise<Bench>): void {
  test('are one list of what is open and what has ended, newest first, in pages of any size', async () => {
    const { store } = await setUp(null);
    const ids = Array.from({ length: 12 }, (_, number) =>
      idOf(`${number}`, startMs + Math.floor(number / 2)),
    );
    for (const [number, id] of ids.entries())
      await store.open({ ...opened(''), requestId: id, model: `m${number % 3}` });
    for (const [number, id] of ids.entries())
      if (number % 4 < 2)
        await store.settle({
          ...settled(''),
          requestId: id,
          begun: { ...settled('').begun, model: `m${number % 3}` },
        });
    const newest = ids.toReversed();
    for (const size of [1, 3, 5, 12, 20]) {
      const listed: string[] = [];
      let before: string | null = null;
      do {
        const page = await store.listRecords({ keyId: key.id }, size, before);
        listed.push(...(page?.records.map(({ requestId }) => requestId) ?? []));
        before = page?.next ?? null;
      } while (before !== null);
      expect(listed).toEqual(newest);
    }
    const some = await store.listRecords({ model: 'm1', from: startMs + 1, to: startMs + 5 }, 20, null);
    expect(some?.records.map(({ requestId, outcome }) => [requestName(requestId), outcome])).toEqual([
      ['7', null],
      ['4', 'completed'],
    ]);
    expect(await store.listRecords({}, 5, 'none')).toBeNull();
    expect(await store.findRecord(idOf('2', startMs + 1), key.id)).toMatchObject({
      outcome: null,
      totalMs: null,
      attempts: [],
    });
    expect(await store.findRecord(idOf('2', startMs + 1), 'other')).toBeNull();
  });
}

function describeCredits(setUp: (balanceNanos: number | null) => Promise<Bench>): void {
  test('books a reference once, and names a repeated one as booked before or as another amount', async () => {
    const { store, account } = await setUp(5);
    const credit = { keyId: key.id, nanos: 10, reference: 'r' };
    const results = await Promise.all(Array.from({ length: 20 }, () => store.credit(credit)));
    expect(results.map(({ result }) => result).toSorted()).toEqual([
      'booked',
      ...Array<string>(19).fill('booked before'),
    ]);
    expect((await store.credit({ ...credit, nanos: 11 })).result).toBe('other amount');
    expect(await account()).toEqual({ balanceNanos: 15, heldNanos: 0, spentNanos: 0 });
  });

  test('books nothing for a key that does not exist, nor what an account can not keep exactly', async () => {
    const { store, account } = await setUp(5);
    const credit = { nanos: Number.MAX_SAFE_INTEGER, reference: 'r' };
    expect(await store.credit({ ...credit, keyId: 'none' })).toEqual({
      result: 'no such key',
      account: null,
    });
    expect((await store.credit({ ...credit, keyId: key.id })).result).toBe('too much');
    expect(await account()).toEqual({ balanceNanos: 5, heldNanos: 0, spentNanos: 0 });
  });

  test('covers what a key spent before its first credit, also where settlements run beside it', async () => {
    const { store, account } = await setUp(null);
    const ids = Array.from({ length: 20 }, (_, number) => `req_${number}`);
    await Promise.all(ids.map((id) => store.open(opened(id))));
    await Promise.all([
      ...ids.slice(0, 10).map((id) => store.settle(settled(id, 3))),
      store.credit({ keyId: key.id, nanos: 100, reference: 'first' }),
      store.credit({ keyId: key.id, nanos: 100, reference: 'second' }),
      ...ids.slice(10).map((id) => store.settle(settled(id, 3))),
    ]);
    expect(await account()).toMatchObject({ heldNanos: 0, spentNanos: 60 });
  });
}

function describeOwners(setUp: (balanceNanos: number | null) => Promise<Bench>): void {
  const later = startMs + 60_000;
  const isPending = (): boolean => false;

  test('closes none of the running requests of one process when a second one starts and sweeps', async () => {
    const { engine, store, account } = await setUp(1_000);
    await store.open(opened('a', 700));
    const second = joinStore(engine);
    expect(await second.closeLostRecords()).toBe(0);
    expect(await sweepOrphans(second, isPending, later)).toBe(0);
    await store.settle(settled('a', 40));
    expect(await account()).toEqual({ balanceNanos: 960, heldNanos: 0, spentNanos: 40 });
  });

  test('closes the records of a process itself when it has no request for them', async () => {
    const { store, account } = await setUp(1_000);
    await store.open(opened('a', 700));
    await store.open(opened('b', 100));
    expect(await sweepOrphans(store, (requestId) => requestId === idOf('b'), later)).toBe(1);
    expect(await account()).toEqual({ balanceNanos: 900, heldNanos: 100, spentNanos: 0 });
  });

  test('settles a record that was closed as lost once more, with its charge, and reports it', async () => {
    const { store, faults, account } = await setUp(1_000);
    await store.open(opened('a', 700));
    expect(await store.closeAsLost([idOf('a')])).toBe(1);
    expect(await store.findRecord(idOf('a'), key.id)).toMatchObject({
      outcome: 'lost',
      status: 500,
      chargeNanos: 0,
    });
    await store.settle(settled('a', 40));
    expect(await account()).toEqual({ balanceNanos: 960, heldNanos: 0, spentNanos: 40 });
    expect(await store.findRecord(idOf('a'), key.id)).toMatchObject({
      outcome: 'completed',
      holdNanos: 700,
      chargeNanos: 40,
    });
    expect(faults).toEqual(['a record that was closed as lost was settled late']);
    await expect(store.settle(settled('a', 40))).rejects.toThrow('no open record');
    expect(await store.closeAsLost([idOf('a')])).toBe(0);
    expect(await account()).toEqual({ balanceNanos: 960, heldNanos: 0, spentNanos: 40 });
  });
}
