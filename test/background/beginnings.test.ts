import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { retrySettlements } from '../../src/background/retry-settlements.ts';
import type { KeptSettlements } from '../../src/background/retry-settlements.ts';
import type { OpenedRecord, Reservation } from '../../src/domain/money/consumption.ts';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { endAllLeases } from '../../src/storage/leases.ts';
import { createStore } from '../../src/storage/store.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { propertyRun } from '../support/property-run.ts';
import { requestIdFor as idOf } from '../support/request-ids.ts';
import { budgetTerms, openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';
import { openTestEngine } from '../support/test-engine.ts';

/** How long beginnings wait for each other, and how long those wait that the database did not take, in milliseconds. */
const [togetherMs, retryMs] = [50, 1_000];

/** A unit as it was handed in. */
interface HandedIn {
  readonly name: string;
  /** Hands it in to another database. */
  repeat(engine: Engine): Promise<unknown>;
}

/** A database with keys that have these balances, whose records are begun in memory, unless `isPlain`. */
async function openBooks(balances: readonly (number | null)[], isPlain = false) {
  const clock = createFakeClock();
  const units: HandedIn[] = [];
  const faults: string[] = [];
  /** How units fail: at once, not before a moment, or after they were made. */
  const state: { fault: StorageError | null; gate: Promise<void> | null; losesAnswers: boolean } = {
    fault: null,
    gate: null,
    losesAnswers: false,
  };
  const hooks: { kept: KeptSettlements | null } = { kept: null };
  const raw = openTestEngine(':memory:', {
    clock,
    beforeUnit: () => hooks.kept?.beginnings?.beforeUnit(),
    beforeRead: async () => hooks.kept?.beginnings?.written(),
  });
  const handIn = async <Done>(name: string, work: (engine: Engine) => Promise<Done>): Promise<Done> => {
    if (state.fault !== null) throw state.fault;
    // Behind what it has handed in before itself.
    const done = work(raw);
    units.push({ name, repeat: work });
    const { gate, losesAnswers } = state;
    if (gate !== null) await gate;
    const answer = await done;
    if (losesAnswers) throw new StorageError('the database thread ended');
    return answer;
  };
  const engine: Engine = Object.create(raw, {
    call: {
      value: (unit: Parameters<Engine['call']>[0], values: Parameters<Engine['call']>[1]) =>
        handIn(unit.name, (to) => to.call(unit, values)),
    },
    run: {
      value: (unit: Parameters<Engine['run']>[0]) => handIn('statements', (to) => to.run(unit)),
    },
  });
  await raw.ready;
  onTestFinished(() => raw.close());
  const report = (message: string): void => void faults.push(message);
  let made = 0;
  const store = createStore(engine, {
    nextId: () => String(made++).padStart(32, '0'),
    now: () => clock.now(),
    report,
    onUnusual: (keyId) => hooks.kept?.beginnings?.forgetKey(keyId),
  });
  for (const [index, nanos] of balances.entries()) {
    const id = keyOf(index);
    await store.createKey({ ...payingKey, id, name: id, hasBalance: nanos !== null }, id, nanos);
  }
  const kept = retrySettlements(store, {
    clock,
    onFault: report,
    spool: null,
    ready: Promise.resolve(),
    isBroken: () => false,
    isLost: () => false,
    ...(isPlain ? {} : { ordered: store }),
  });
  hooks.kept = kept;
  await kept.recover();
  return {
    clock,
    units,
    faults,
    state,
    raw,
    store,
    kept,
    names: () => units.map(({ name }) => name),
    /** What all accounts say. */
    accounts: async () => {
      await kept.beginnings?.written();
      return [...(await store.accounts(balances.map((_, index) => keyOf(index)))).entries()];
    },
    audit: () => verifyLedger(createLedgerAudit(engine)),
  };
}

type Books = Awaited<ReturnType<typeof openBooks>>;

const keyOf = (index: number): string => `key_${index}`;

const opened = (
  name: string,
  {
    key = 0,
    hold = 10,
    least,
    model = 'm',
  }: { key?: number; hold?: number; least?: number; model?: string } = {},
): OpenedRecord => ({
  ...openedRecord,
  requestId: idOf(name),
  keyId: keyOf(key),
  model,
  price,
  hold: { nanos: hold, leastNanos: least ?? hold },
});

/** One nano-USD for each token of an answer. */
const price = { ...openedRecord.price, output: 1_000_000 };

/** Ends a request that was begun. */
function settledOf(
  { requestId, hold: _hold, budgets: _none, ...begun }: OpenedRecord,
  held: Reservation,
  chargeNanos: number,
) {
  if (!held.granted) throw new Error(`${requestId} was not begun`);
  return {
    ...settledRecord,
    requestId,
    begun: { ...begun, holdNanos: held.holdNanos ?? 0 },
    usage: { ...noUsage, outputTokens: chargeNanos, totalTokens: chargeNanos },
    usageSource: 'upstream' as const,
    chargeNanos,
  };
}

const noUsage = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  totalTokens: 0,
};

/** Makes a request. */
async function use(kept: KeptSettlements, record: OpenedRecord, chargeNanos: number): Promise<void> {
  await kept.settle(settledOf(record, await kept.open(record), chargeNanos));
}

/** Books of one key whose balance the gateway knows. */
async function openKnown(balance: number | null = 1_000): Promise<Books> {
  const books = await openBooks([balance]);
  await use(books.kept, opened('first'), 1);
  books.units.length = 0;
  return books;
}

describe('a record that is begun in memory', () => {
  test('is written with its end, in one unit, when its request is over within 50 ms', async () => {
    const { clock, kept, names, accounts, audit } = await openKnown();
    await use(kept, opened('a'), 4);
    clock.advance(togetherMs);
    expect(names()).toEqual(['settle_record']);
    expect(await accounts()).toEqual([[keyOf(0), { balanceNanos: 995, heldNanos: 0, spentNanos: 5 }]]);
    expect((await audit()).faults).toEqual([]);
  });

  test('has the hold, the end and the lateness of one that was begun in the database', async () => {
    const { kept, store, faults } = await openKnown();
    await use(kept, opened('a', { hold: 7 }), 4);
    const found = await store.findRecord(idOf('a'), null);
    expect(found).toMatchObject({ holdNanos: 7, chargeNanos: 4, outcome: 'completed' });
    // One whose beginning is nowhere is reported.
    expect(faults).toEqual([]);
  });

  test('is written with the others after 50 ms, and holds what it was granted', async () => {
    const { clock, kept, names, accounts } = await openKnown();
    const begun = await Promise.all(
      ['a', 'b', 'c'].map((name) => kept.open(opened(name, { hold: 333, least: 1 }))),
    );
    expect(begun.map((one) => one.granted && one.holdNanos)).toEqual([333, 333, 333]);
    clock.advance(togetherMs - 1);
    expect(names()).toEqual([]);
    clock.advance(1);
    expect(names()).toEqual(['open_record', 'open_record', 'open_record']);
    expect(await accounts()).toEqual([[keyOf(0), { balanceNanos: 0, heldNanos: 999, spentNanos: 1 }]]);
  });

  test('is none whose key has only a part of its hold: a settlement that is handed in meanwhile would change it', async () => {
    const { clock, kept, faults, names, accounts } = await openKnown();
    const first = opened('a', { hold: 400 });
    const begun = await kept.open(first);
    expect(await kept.open(opened('b', { hold: 900, least: 1 }))).toMatchObject({ holdNanos: 599 });
    expect(names()).toEqual(['open_record', 'open_record']);
    await kept.settle(settledOf(first, begun, 4));
    clock.advance(togetherMs);
    expect(await accounts()).toEqual([[keyOf(0), { balanceNanos: 396, heldNanos: 599, spentNanos: 5 }]]);
    expect(faults).toEqual([]);
  });

  test('is written before a settlement that charges more than its request holds', async () => {
    const { clock, kept, faults, names, accounts } = await openKnown();
    const first = opened('a', { hold: 10 });
    const begun = await kept.open(first);
    await kept.open(opened('b', { hold: 989, least: 1 }));
    await kept.settle(settledOf(first, begun, 50));
    expect(names()).toEqual(['open_record', 'open_record', 'settle_record']);
    clock.advance(togetherMs);
    expect(await accounts()).toEqual([[keyOf(0), { balanceNanos: -40, heldNanos: 989, spentNanos: 51 }]]);
    expect(faults).toEqual([]);
  });

  test.for([null, 1_000])(
    'is seen by a read, and by a unit that is handed in behind it (balance: %s)',
    async (balance) => {
      const { kept, store, names, accounts } = await openKnown(balance);
      await kept.open(opened('a'));
      expect(await store.countOpen()).toBe(1);
      await kept.open(opened('b'));
      await store.closeAsLost([idOf('a'), idOf('b')]);
      expect(names()).toEqual(['open_record', 'open_record', 'statements']);
      expect((await accounts())[0]?.[1].heldNanos).toBe(0);
    },
  );

  test('is refused by the database, which says what is held', async () => {
    const { kept, names } = await openKnown(11);
    await kept.open(opened('a', { hold: 10 }));
    expect(await kept.open(opened('b', { hold: 10 }))).toEqual({
      granted: false,
      balanceNanos: 0,
      heldNanos: 10,
    });
    expect(names()).toEqual(['open_record', 'open_record']);
  });

  test('is none of a key with a budget, nor the first of its kind', async () => {
    const { kept, names } = await openKnown();
    await kept.open({ ...opened('a'), budgets: [budgetTerms] });
    await kept.open(opened('b', { model: 'another' }));
    expect(names()).toEqual(['open_budgeted', 'number_kind', 'open_record']);
  });

  test('waits for the database behind the first one of its key alone, however many come at once', async () => {
    const { kept, names, raw, units } = await openBooks([1_000, 1_000]);
    await use(kept, opened('kind', { key: 1 }), 1);
    units.length = 0;
    await Promise.all(Array.from({ length: 32 }, (_, index) => kept.open(opened(`r${index}`))));
    expect(names()).toEqual(['open_record']);
    await raw.read([]);
    expect(names()).toHaveLength(32);
  });

  test('has what a settlement gave back while the database was asked for the balance', async () => {
    const { kept, store, names, units } = await openKnown();
    const first = opened('a', { hold: 400 });
    const begun = await kept.open(first);
    await store.credit({ keyId: keyOf(0), nanos: 1, reference: 'more' });
    units.length = 0;
    await Promise.all([kept.beginnings?.open(opened('b')), kept.settle(settledOf(first, begun, 4))]);
    expect(await kept.open(opened('c', { hold: 5_000, least: 1 }))).toMatchObject({ holdNanos: 986 });
    expect(names()).toEqual(['open_record', 'settle_record', 'open_record']);
  });

  test('is offered again after a second when the database does not take it, and holds meanwhile in memory', async () => {
    const { clock, state, kept, faults, accounts } = await openKnown(21);
    await kept.open(opened('a'));
    state.fault = new StorageError('the disk is full', 'full');
    clock.advance(togetherMs);
    await setImmediate();
    expect(faults).toEqual([
      'the database does not take beginnings of records: they are kept and offered again',
    ]);
    state.fault = null;
    clock.advance(retryMs);
    await setImmediate();
    expect(await accounts()).toEqual([[keyOf(0), { balanceNanos: 10, heldNanos: 10, spentNanos: 1 }]]);
  });

  test('is begun in the database as long as that does not take writes, so that a call which can not be recorded is not made', async () => {
    const { clock, state, kept, names } = await openKnown();
    await kept.open(opened('a'));
    state.fault = new StorageError('the disk is full', 'full');
    clock.advance(togetherMs);
    await setImmediate();
    await expect(kept.open(opened('b'))).rejects.toThrow('the disk is full');
    state.fault = null;
    expect(await kept.open(opened('c'))).toMatchObject({ granted: true });
    expect(names()).toEqual(['open_record', 'open_record']);
  });

  test('holds again when its settlement is not taken, until that is made', async () => {
    const { clock, state, kept, accounts, audit, faults } = await openKnown(21);
    const record = opened('a');
    const begun = await kept.open(record);
    state.fault = new StorageError('the disk is full', 'full');
    expect(await kept.settle(settledOf(record, begun, 4))).toBeNull();
    state.fault = null;
    clock.advance(togetherMs);
    expect(await accounts()).toEqual([[keyOf(0), { balanceNanos: 10, heldNanos: 10, spentNanos: 1 }]]);
    clock.advance(retryMs);
    expect(await kept.flush()).toBe(0);
    expect(await accounts()).toEqual([[keyOf(0), { balanceNanos: 16, heldNanos: 0, spentNanos: 5 }]]);
    expect([(await audit()).faults, faults.length]).toEqual([[], 1]);
  });

  test('is not written behind its settlement when the database takes that and not the beginning', async () => {
    const { clock, state, kept, store, accounts } = await openKnown();
    const record = opened('a');
    const begun = await kept.open(record);
    state.fault = new StorageError('the disk is full', 'full');
    clock.advance(togetherMs);
    state.fault = null;
    await kept.settle(settledOf(record, begun, 4));
    clock.advance(retryMs);
    expect(await store.countOpen()).toBe(0);
    expect((await accounts())[0]?.[1]).toEqual({ balanceNanos: 995, heldNanos: 0, spentNanos: 5 });
  });

  test('holds again when its beginning and its settlement are not taken, one after the other', async () => {
    const { clock, state, kept } = await openKnown(11);
    const record = opened('a');
    const begun = await kept.open(record);
    state.fault = new StorageError('the disk is full', 'full');
    clock.advance(togetherMs);
    expect(await kept.settle(settledOf(record, begun, 10))).toBeNull();
    await setImmediate();
    state.fault = null;
    expect(await kept.open(opened('b'))).toMatchObject({ granted: false });
  });

  test('gives its hold back once when its settlement was slow and is tried again', async () => {
    const { clock, state, kept, accounts } = await openKnown(101);
    const record = opened('a', { hold: 60 });
    const begun = await kept.open(record);
    const gate = Promise.withResolvers<void>();
    state.gate = gate.promise;
    const settled = kept.settle(settledOf(record, begun, 1));
    clock.advance(3_000);
    expect(await settled).toBeNull();
    state.gate = null;
    gate.resolve();
    expect(await accounts()).toEqual([[keyOf(0), { balanceNanos: 99, heldNanos: 0, spentNanos: 2 }]]);
    const [, , last] = await Promise.all([
      kept.beginnings?.open(opened('b', { hold: 50 })),
      kept.flush(),
      kept.beginnings?.open(opened('c', { hold: 50 })),
    ]);
    expect(last).toMatchObject({ granted: false });
    expect(await accounts()).toEqual([[keyOf(0), { balanceNanos: 49, heldNanos: 50, spentNanos: 2 }]]);
  });

  test('holds nothing once its settlement turns out to be made, although the answer was lost', async () => {
    const { clock, state, kept, accounts, store } = await openKnown(21);
    const record = opened('a');
    const begun = await kept.open(record);
    state.losesAnswers = true;
    expect(await kept.settle(settledOf(record, begun, 4))).toBeNull();
    state.losesAnswers = false;
    clock.advance(togetherMs);
    await setImmediate();
    clock.advance(retryMs);
    expect(await kept.flush()).toBe(0);
    expect(await accounts()).toEqual([[keyOf(0), { balanceNanos: 16, heldNanos: 0, spentNanos: 5 }]]);
    expect(await store.countOpen()).toBe(0);
  });

  test('is charged although records of a later time were removed, as after a clock that ran ahead', async () => {
    const { kept, raw, accounts } = await openKnown(101);
    const removed = 'INSERT INTO record_removals (id, removed_before) VALUES (1, 9000000000000)';
    await raw.lookUp([{ sql: removed, values: [] }]);
    await use(kept, opened('a'), 4);
    expect((await accounts())[0]?.[1].spentNanos).toBe(5);
  });

  test('waits 50 ms although an earlier one is to be offered again', async () => {
    const { clock, state, kept, names, units } = await openKnown();
    await kept.open(opened('a'));
    state.fault = new StorageError('the disk is full', 'full');
    clock.advance(togetherMs);
    await setImmediate();
    state.fault = null;
    await kept.open(opened('b'));
    units.length = 0;
    await kept.open(opened('c'));
    clock.advance(togetherMs);
    expect(names()).toEqual(['open_record']);
  });

  test('is not tried again behind the close', async () => {
    const { clock, state, kept, faults } = await openKnown(21);
    const record = opened('a');
    const begun = await kept.open(record);
    state.fault = new StorageError('the disk is full', 'full');
    await kept.settle(settledOf(record, begun, 4));
    await kept.close();
    clock.advance(retryMs);
    await setImmediate();
    expect(faults).toHaveLength(1);
  });

  test('gives no more back than the database holds', async () => {
    const { clock, kept, raw } = await openKnown();
    const record = opened('a', { hold: 10, least: 1 });
    const begun = await kept.open(record);
    await raw.lookUp([{ sql: 'UPDATE accounts SET balance = 7', values: [] }]);
    clock.advance(togetherMs);
    await kept.beginnings?.written();
    await kept.open(opened('b', { hold: 0 }));
    await kept.settle(settledOf(record, begun, 2));
    expect(await kept.open(opened('c', { hold: 6 }))).toMatchObject({ granted: false, balanceNanos: 5 });
  });

  test('is reported when the database has another balance than is known, and its key is asked for again', async () => {
    const { clock, kept, raw, faults, names } = await openKnown();
    await kept.open(opened('a'));
    // As no part of the gateway does: look-ups only read, so nothing is handed in before one.
    await raw.lookUp([{ sql: 'UPDATE accounts SET balance = 5', values: [] }]);
    clock.advance(togetherMs);
    await kept.beginnings?.written();
    expect(faults).toEqual(['a hold in memory is not the one in the database']);
    expect(await kept.open(opened('b'))).toEqual({ granted: false, balanceNanos: 5, heldNanos: 0 });
    expect(names()).toEqual(['open_record', 'open_record']);
  });
});

/** One step of a history: which of the keys or running requests it is about, and how much. */
interface Step {
  readonly kind: 'open' | 'settle' | 'credit' | 'lose' | 'wait' | 'check' | 'fail' | 'lose answers' | 'mend';
  readonly at: number;
  readonly nanos: number;
  readonly leastNanos: number;
  /** Whether the next step comes before this one is done. */
  readonly goesOn: boolean;
}

const usual = ['open', 'open', 'open', 'settle', 'settle', 'credit', 'lose', 'wait', 'check'] as const;

const histories = (
  goesOn: fc.Arbitrary<boolean>,
  kinds: readonly Step['kind'][] = usual,
): fc.Arbitrary<readonly Step[]> =>
  fc.array(
    fc.record({
      kind: fc.constantFrom(...kinds),
      at: fc.nat(5),
      nanos: fc.nat(30),
      leastNanos: fc.nat(30),
      goesOn,
    }),
    { maxLength: 40 },
  );

const balances = [60, null, 0];

/** Makes a history of steps; returns what each was answered, and calls back with the charge of each settlement that was made. */
async function play(
  books: Books,
  history: readonly Step[],
  onSettled: (nanos: number, keyId: string) => void = () => {},
) {
  const { clock, kept, store, state } = books;
  const running: { readonly record: OpenedRecord; readonly begun: Reservation }[] = [];
  const answers: Promise<unknown>[] = [];
  const steps: Readonly<Record<Step['kind'], (step: Step, number: number) => Promise<unknown>>> = {
    async open({ at, nanos, leastNanos }, number) {
      const record = opened(`r${number}`, {
        key: at % balances.length,
        hold: nanos,
        least: Math.min(nanos, leastNanos),
        model: number % 7 === 0 ? 'rare' : 'm',
      });
      const begun = await kept.open(record);
      if (begun.granted) running.push({ record, begun });
      return { ...begun, number };
    },
    async settle({ at, nanos }) {
      const [ended] = running.splice(at % (running.length || 1), 1);
      if (ended === undefined) return null;
      const unbooked = await kept.settle(settledOf(ended.record, ended.begun, nanos));
      onSettled(nanos, ended.record.keyId);
      return unbooked;
    },
    credit: ({ nanos }, number) =>
      store.credit({ keyId: keyOf(0), nanos: nanos + 1, reference: String(number) }),
    async lose({ at }) {
      const lost = running[at % (running.length || 1)];
      return lost === undefined ? 0 : store.closeAsLost([lost.record.requestId]);
    },
    async wait({ nanos }) {
      clock.advance(nanos * 4);
    },
    check: () => books.accounts(),
    async fail() {
      state.fault = new StorageError('the disk is full', 'full');
    },
    'lose answers': async () => void (state.losesAnswers = true),
    async mend() {
      state.fault = null;
      state.losesAnswers = false;
    },
  };
  for (const [number, step] of history.entries()) {
    const answer = steps[step.kind](step, number);
    // A step that fails is answered with its error.
    const told = answer.catch((error: unknown) => String(error));
    answers.push(told);
    if (!step.goesOn) await told;
  }
  return { answers: await Promise.all(answers), running };
}

describe('records that are begun in memory', () => {
  test('are granted, held and charged as those that are begun in the database, one after the other', async () => {
    await fc.assert(
      fc.asyncProperty(histories(fc.constant(false)), async (history) => {
        const [inMemory, plain] = [await openBooks(balances), await openBooks(balances, true)];
        expect((await play(inMemory, history)).answers).toEqual((await play(plain, history)).answers);
        expect(await inMemory.accounts()).toEqual(await plain.accounts());
        const list = (books: Books) => books.store.listRecords({}, 100, null);
        expect(await list(inMemory)).toEqual(await list(plain));
        expect(inMemory.faults).toEqual(plain.faults);
      }),
      propertyRun(60),
    );
  });

  test('are held in memory as in the database, whatever comes at the same time', async () => {
    await fc.assert(
      fc.asyncProperty(histories(fc.boolean()), async (history) => {
        const books = await openBooks(balances);
        await play(books, history);
        const unexpected = books.faults.filter((fault) => !fault.includes('closed as lost'));
        expect([unexpected, (await books.audit()).faults]).toEqual([[], []]);
      }),
      propertyRun(60),
    );
  });

  test('are charged once, and held in memory as in the database, whatever fails', async () => {
    const kinds = [...usual, ...usual, 'wait', 'fail', 'lose answers', 'mend', 'mend'] as const;
    await fc.assert(
      fc.asyncProperty(histories(fc.boolean(), kinds), async (history) => {
        const books = await openBooks(balances);
        const { clock, kept, store, state } = books;
        let charged = 0;
        const { running } = await play(books, history, (nanos) => void (charged += nanos));
        state.fault = null;
        state.losesAnswers = false;
        for (let tries = 0; tries < 3; tries++) {
          clock.advance(retryMs);
          await setImmediate();
          await kept.flush();
        }
        // As the sweep does: a request that was told of a failure may have been begun.
        const isRunning = new Set(running.map(({ record }) => record.requestId));
        const open = await store.listClosable(clock.now() + 1, Infinity);
        await store.closeAsLost(open.filter((requestId) => !isRunning.has(requestId)));
        const accounts = await books.accounts();
        expect([kept.waiting, accounts.reduce((sum, [, { spentNanos }]) => sum + spentNanos, 0)]).toEqual([
          0,
          charged,
        ]);
        expect((await books.audit()).faults).toEqual([]);
        for (const [index, [, { balanceNanos }]] of accounts.entries()) {
          await kept.open(opened(`known ${index}`, { key: index, hold: 0 }));
          const rest = await kept.open(opened(`rest ${index}`, { key: index, hold: 1_000_000, least: 0 }));
          expect(rest).toMatchObject({
            balanceNanos: balanceNanos === null ? null : Math.min(balanceNanos, 0),
          });
        }
      }),
      propertyRun(60),
    );
  });

  test('agree with the database after a crash behind any of its units: what was answered is charged, and nothing is held', async () => {
    await fc.assert(
      fc.asyncProperty(histories(fc.boolean()), async (history) => {
        const books = await openBooks(balances);
        const charged: { readonly behind: number; readonly nanos: number }[] = [];
        await play(books, history, (nanos) => void charged.push({ behind: books.units.length, nanos }));
        for (let count = balances.length; count <= books.units.length; count++) {
          const engine = openTestEngine(':memory:');
          await engine.ready;
          for (const unit of books.units.slice(0, count)) await unit.repeat(engine);
          const store = createStore(engine, { nextId: () => 'x'.repeat(32), now: () => 1, report: () => {} });
          await engine.run([endAllLeases]);
          await store.closeLostRecords();
          const accounts = [...(await store.accounts(balances.map((_, index) => keyOf(index)))).values()];
          const spent = accounts.reduce((sum, { spentNanos }) => sum + spentNanos, 0);
          const answered = charged.reduce(
            (sum, { behind, nanos }) => (behind <= count ? sum + nanos : sum),
            0,
          );
          expect(accounts.map(({ heldNanos }) => heldNanos)).toEqual([0, 0, 0]);
          expect(spent).toBeGreaterThanOrEqual(answered);
          expect((await verifyLedger(createLedgerAudit(engine))).faults).toEqual([]);
          await engine.close();
        }
      }),
      propertyRun(10),
    );
  });
});
