import { randomBytes, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Account } from '../../src/domain/ports/accounts.ts';
import { isUsable } from '../../src/domain/keys/api-key.ts';
import { free } from '../../src/domain/money/pricing.ts';
import { declareKeys } from '../../src/operations/declare-keys.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { hashKey } from '../../src/shared/digest.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createStore } from '../../src/storage/store.ts';
import { idOf } from './store.ts';
import type { Store } from '../../src/storage/store.ts';
import { propertyRun } from '../support/property-run.ts';
import { openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { declared } from './declarations.ts';

const nowMs = 1_800_000_000_000;

interface Subject {
  readonly store: Store;
  /** The id and the account of the usable key that has a secret. */
  readonly holderOf: (hash: string) => Promise<{ readonly id: string; readonly account: Account } | null>;
  /** Makes the declared keys those of a config, given as the hashes of names. */
  readonly declare: (config: Readonly<Record<string, string>>) => ReturnType<typeof declareKeys>;
  /** Lets a key spend one nano-USD. */
  readonly spend: (keyId: string) => Promise<boolean>;
  /** What the verification of the ledger finds. */
  readonly faults: () => Promise<readonly string[]>;
}

function subjectOf(engine: Engine): Subject {
  const store = createStore(engine, { nextId: () => randomUUID(), now: () => nowMs, report: () => {} });
  const ports = { store, randomBytes, hash: hashKey, now: () => nowMs };
  return {
    store,
    async holderOf(hash) {
      const key = await store.findKeyByHash(hash);
      if (key === null || !isUsable(key, nowMs)) return null;
      const account = (await store.accounts([key.id])).get(key.id);
      if (account === undefined) throw new Error(`${key.id} has no account`);
      return { id: key.id, account };
    },
    declare: (config) =>
      declareKeys(
        Object.entries(config).map(([name, hash]) => declared(name, hash)),
        ports,
      ),
    async spend(keyId) {
      const requestId = idOf(randomUUID());
      const price = { ...free, request: 1 };
      const hold = { nanos: 1, leastNanos: 1 };
      if (!(await store.open({ ...openedRecord, requestId, keyId, price, hold })).granted) return false;
      await store.settle({
        ...settledRecord,
        requestId,
        begun: { ...settledRecord.begun, keyId, price },
        price,
      });
      return true;
    },
    faults: async () => (await verifyLedger(createLedgerAudit(engine))).faults,
  };
}

/**
 * What every engine must do with the money of keys whose secrets move to other keys. Each of the random walks has a database
 * of its own.
 */
export function describePrepaidSecrets(engineName: string, open: () => Promise<Engine>, walks: number): void {
  const start = async (): Promise<Subject> => {
    const engine = await open();
    onTestFinished(() => engine.close());
    return subjectOf(engine);
  };
  describe(`${engineName}: secrets of keys with a balance`, () => {
    describeRenames(start);
    describeMoves(start);
  });
  test(`${engineName}: no change of declared keys lets a prepaid secret go on without paying`, async () => {
    const property = fc.asyncProperty(fc.array(anyStep, { minLength: 3, maxLength: 12 }), async (steps) => {
      const engine = await open();
      try {
        await walk(subjectOf(engine), steps);
      } finally {
        await engine.close();
      }
    });
    await expect(fc.assert(property, propertyRun(walks))).resolves.toBeUndefined();
  });
}

type Start = () => Promise<Subject>;

function describeRenames(start: Start): void {
  test.each([
    ['in one change', [{ robert: 'h1' }]],
    ['after a config without it', [{}, { robert: 'h1' }]],
    ['there and back', [{ robert: 'h1' }, { bob: 'h1' }]],
    ['to a third name', [{ robert: 'h1' }, {}, { rob: 'h1' }]],
  ])('keep their key and its account when it is renamed %s', async (_way, configs) => {
    const { store, declare, holderOf } = await start();
    await store.createKey(payingKey, 'h1', 5);
    expect(await declare({ bob: 'h1' })).toMatchObject({ adopted: ['bob'] });
    let last: Awaited<ReturnType<typeof declare>> | null = null;
    for (const config of configs) last = await declare(config);
    expect(last).toMatchObject({ renamed: Object.keys(configs.at(-1) ?? {}), unfunded: [] });
    expect(await holderOf('h1')).toMatchObject({ id: payingKey.id, account: { balanceNanos: 5 } });
    expect(await store.countKeys()).toBe(1);
  });

  test('leave the old name free for a new key, with an id of its own', async () => {
    const { store, declare, holderOf } = await start();
    await declare({ bob: 'h1' });
    const first = await holderOf('h1');
    await store.credit({ keyId: first?.id ?? '', nanos: 5, reference: 'r' });
    await declare({ robert: 'h1' });
    await declare({ robert: 'h1', bob: 'h2' });
    expect(await holderOf('h1')).toMatchObject({ id: first?.id, account: { balanceNanos: 5 } });
    const second = await holderOf('h2');
    expect(second?.id).not.toBe(first?.id);
    expect(second?.account.balanceNanos).toBeNull();
  });
}

function describeMoves(start: Start): void {
  const prepaid = 'h1';
  const others = { eve: 'h2', ann: 'h3' };

  test.each([
    ['is passed on to a new name while its own is declared with another', [{ bob: 'h9', robert: 'h1' }]],
    ['is exchanged with a key without a balance', [{ bob: 'h2', eve: 'h1' }]],
    ['comes back under another name, long after it was replaced', [{ bob: 'h9' }, { bob: 'h9', rob: 'h1' }]],
    ['comes back when both names are gone', [{ bob: 'h9' }, {}, { rob: 'h1' }]],
    ['is moved to a name that was removed', [{ ann: 'h3' }, { ann: 'h3', eve: 'h1' }]],
  ])('give a balance of 0 to the key that gets one which %s', async (_way, configs) => {
    const { store, declare, holderOf, spend, faults } = await start();
    await declare({ bob: prepaid, ...others });
    const first = await holderOf(prepaid);
    await store.credit({ keyId: first?.id ?? '', nanos: 1, reference: 'r' });
    expect(await spend(first?.id ?? '')).toBe(true);
    const ann = await holderOf('h3');
    const unfunded: string[] = [];
    for (const config of configs) unfunded.push(...(await declare({ ...config, ann: 'h3' })).unfunded);
    const holder = await holderOf(prepaid);
    expect(holder?.id).not.toBe(first?.id);
    expect(holder?.account).toEqual({ balanceNanos: 0, heldNanos: 0, spentNanos: 0 });
    expect(unfunded).toHaveLength(1);
    expect(await spend(holder?.id ?? '')).toBe(false);
    // The keys beside it stay as they are.
    expect(await holderOf('h3')).toEqual(ann);
    expect(await faults()).toEqual([]);
  });

  test('leave the balance of 0 to a key whose change is undone; a new name with a new secret has none', async () => {
    const { store, declare, holderOf } = await start();
    const before = { bob: 'h1', eve: 'h2' };
    await declare(before);
    await store.credit({ keyId: (await holderOf('h1'))?.id ?? '', nanos: 1, reference: 'r' });
    expect(await declare({ bob: 'h2', eve: 'h1' })).toMatchObject({ unfunded: ['eve'] });
    await declare(before);
    expect((await holderOf('h2'))?.account.balanceNanos).toBe(0);
    await declare({ bob: 'h1', eve: 'h4' });
    expect((await holderOf('h4'))?.account.balanceNanos).toBe(0);
    await declare({ bob: 'h1', 'new eve': 'h5' });
    expect((await holderOf('h5'))?.account.balanceNanos).toBeNull();
  });

  test('cover what the key spent that gets one, and let it spend what is credited then', async () => {
    const { store, declare, holderOf, spend, faults } = await start();
    await declare({ bob: 'h1', eve: 'h2' });
    const [bob, eve] = [await holderOf('h1'), await holderOf('h2')];
    await store.credit({ keyId: bob?.id ?? '', nanos: 1, reference: 'r' });
    expect(await spend(eve?.id ?? '')).toBe(true);
    expect(await declare({ bob: 'h2', eve: 'h1' })).toMatchObject({ unfunded: ['eve'] });
    expect((await holderOf('h1'))?.account).toEqual({ balanceNanos: 0, heldNanos: 0, spentNanos: 1 });
    expect(await spend(eve?.id ?? '')).toBe(false);
    await store.credit({ keyId: eve?.id ?? '', nanos: 1, reference: 'r' });
    expect([await spend(eve?.id ?? ''), await spend(eve?.id ?? '')]).toEqual([true, false]);
    expect(await faults()).toEqual([]);
  });

  test('count a request that was running when its key got one against the next credit', async () => {
    const { store, declare, holderOf, faults } = await start();
    await declare({ bob: 'h1', eve: 'h2' });
    const [bob, eve] = [await holderOf('h1'), await holderOf('h2')];
    await store.credit({ keyId: bob?.id ?? '', nanos: 1, reference: 'r' });
    const price = { ...free, request: 1 };
    await store.open({ ...openedRecord, keyId: eve?.id ?? '', price, hold: { nanos: 1, leastNanos: 1 } });
    await declare({ bob: 'h2', eve: 'h1' });
    const begun = { ...settledRecord.begun, keyId: eve?.id ?? '', price };
    await store.settle({ ...settledRecord, begun, price });
    expect((await holderOf('h1'))?.account).toEqual({ balanceNanos: -1, heldNanos: 0, spentNanos: 1 });
    expect(await faults()).toEqual([]);
  });

  test('of an issued key stay paid for under a name that has a key already, and in a grace period', async () => {
    const { store, declare, holderOf } = await start();
    await store.createKey(payingKey, 'h8', 5);
    await store.rotateKey(payingKey.id, 'h9', nowMs + 1_000);
    await declare({ bob: 'h1' });
    expect(await declare({ bob: 'h8' })).toMatchObject({ adopted: [], unfunded: ['bob'] });
    expect((await holderOf('h8'))?.account.balanceNanos).toBe(0);
    expect((await holderOf('h9'))?.account.balanceNanos).toBe(5);
    await declare({});
    expect(await declare({ bob: 'h9' })).toMatchObject({ unfunded: [] });
    expect((await holderOf('h9'))?.account.balanceNanos).toBe(0);
    expect(await store.findKeyById(payingKey.id)).toMatchObject({ revokedAtMs: nowMs });
  });

  test('give no balance to keys that get one of another key without a balance, in the same change', async () => {
    const { store, declare, holderOf } = await start();
    await declare({ a: 'h1', b: 'h2', c: 'h3' });
    await store.credit({ keyId: (await holderOf('h1'))?.id ?? '', nanos: 1, reference: 'r' });
    expect(await declare({ a: 'h3', b: 'h1', c: 'h2' })).toMatchObject({ unfunded: ['b'] });
    expect((await holderOf('h2'))?.account.balanceNanos).toBeNull();
    expect((await holderOf('h3'))?.account.balanceNanos).toBe(1);
  });

  test('are refused as declared ones when their issued key was revoked, and everything else is stored', async () => {
    const { store, declare, holderOf } = await start();
    await store.createKey(payingKey, 'h1', 5);
    await store.revokeKey(payingKey.id, 1);
    const report = { changed: ['eve'], refused: ['bob'], adopted: [] };
    expect(await declare({ bob: 'h1', eve: 'h2' })).toMatchObject(report);
    expect(await holderOf('h1')).toBeNull();
    expect(await holderOf('h2')).not.toBeNull();
    expect(await declare({ bob: 'h1', eve: 'h2' })).toMatchObject({ changed: [], refused: ['bob'] });
  });
}

const [names, hashes] = [
  ['ann', 'bob', 'eve'],
  ['h1', 'h2', 'h3', 'h4', 'h5'],
];

/** Steps by which keys and their secrets change: a config, or what an operator does by the admin API. */
const anyConfig = fc
  .tuple(fc.uniqueArray(fc.constantFrom(...names)), fc.shuffledSubarray(hashes))
  .map(([chosen, secrets]) =>
    Object.fromEntries(secrets.slice(0, chosen.length).map((hash, at) => [chosen[at] ?? '', hash])),
  );
const anyStep = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('declare' as const), config: anyConfig }) },
  fc.record({
    kind: fc.constantFrom('credit' as const, 'issue' as const, 'rotate' as const, 'spend' as const),
    hash: fc.constantFrom(...hashes),
  }),
);

type Step = typeof anyStep extends fc.Arbitrary<infer Each> ? Each : never;

/** After every step, a usable key whose secret was ever that of a key with a balance has a balance itself. */
async function walk(subject: Subject, steps: readonly Step[]): Promise<void> {
  const [prepaid, used] = [new Set<string>(), new Set<string>()];
  for (const step of steps) {
    // Issued secrets are random, so none is that of an earlier key.
    if (step.kind !== 'issue' || !used.has(step.hash)) await take(subject, step);
    for (const hash of step.kind === 'declare' ? Object.values(step.config) : [step.hash]) used.add(hash);
    for (const hash of hashes) {
      const holder = await subject.holderOf(hash);
      if (holder === null) continue;
      const { balanceNanos } = holder.account;
      if (balanceNanos !== null) prepaid.add(hash);
      expect([hash, balanceNanos === null]).toEqual([hash, !prepaid.has(hash)]);
      expect(balanceNanos ?? 0).toBeGreaterThanOrEqual(0);
    }
    expect(await subject.faults()).toEqual([]);
  }
}

async function take({ store, holderOf, declare, spend }: Subject, step: Step): Promise<void> {
  if (step.kind === 'declare') return void (await declare(step.config));
  const { hash } = step;
  const holder = await holderOf(hash);
  if (step.kind === 'credit' && holder !== null)
    await store.credit({ keyId: holder.id, nanos: 1, reference: randomUUID() });
  if (step.kind === 'spend' && holder !== null) await spend(holder.id);
  if (step.kind === 'rotate' && holder !== null)
    await store.rotateKey(holder.id, randomUUID(), nowMs + 1_000);
  if (step.kind === 'issue')
    await store.createKey({ ...payingKey, id: `key_${randomUUID()}`, hasBalance: false }, hash, null);
}
