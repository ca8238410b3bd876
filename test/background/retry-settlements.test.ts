import { setImmediate } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { OpenedRecord, SettledRecord } from '../../src/domain/money/consumption.ts';
import type { Clock } from '../../src/domain/ports/clock.ts';
import type { ReportFault } from '../../src/domain/ports/telemetry.ts';
import { ClaimLostError } from '../../src/domain/ports/claims.ts';
import { KeyLockedError, StorageError } from '../../src/domain/storage-refusal.ts';
import { sweepOrphans } from '../../src/background/monitor-ledger.ts';
import { createStore } from '../../src/storage/store.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { retrySettlements } from '../../src/background/retry-settlements.ts';
import type { KeptSettlements } from '../../src/background/retry-settlements.ts';
import { eventually } from '../support/eventually.ts';
import type { SettlementSpool } from '../../src/domain/ports/records.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { requestIdFor as idOf } from '../support/request-ids.ts';
import { openedRecord, payingKey, settledRecord } from '../support/stored-rows.ts';

/** Records of which only settlements matter, and which fail while `fault` is set. */
function startRecords() {
  const settled: string[] = [];
  const state: { fault: Error | null } = { fault: null };
  const records = {
    open: async () => {
      if (state.fault !== null) throw state.fault;
      return { granted: true, holdNanos: null, balanceNanos: null } as const;
    },
    async checkWrites() {
      if (state.fault !== null) throw state.fault;
    },
    isSettled: async (_record: SettledRecord) => false,
    async closeLostRecords() {
      settled.push('lost ones');
      return 0;
    },
    async settle({ requestId }: SettledRecord) {
      if (state.fault !== null) throw state.fault;
      settled.push(requestId);
      return 0;
    },
  };
  return { records, settled, state };
}

/** Keeps settlements of a database without a spool that has been opened. */
async function keep(
  records: ReturnType<typeof startRecords>['records'],
  clock: Clock,
  onFault: ReportFault = () => {},
  isBroken = () => false,
): Promise<KeptSettlements> {
  const kept = retrySettlements(records, {
    clock,
    onFault,
    spool: null,
    ready: Promise.resolve(),
    isBroken,
    isLost: () => false,
  });
  await kept.recover();
  return kept;
}

const opened: OpenedRecord = { ...openedRecord, requestId: 'b', hold: { nanos: 0, leastNanos: 1 } };

const record = (id: string): SettledRecord => ({ ...settledRecord, requestId: id });

describe('a settlement with a claim', () => {
  const claimed = (id: string): SettledRecord => ({ ...record(id), claim: { name: 'n', isFreed: false } });
  const away = new StorageError('the database is away');

  /** Keeps settlements with a spool that takes as long as the test says. */
  async function keepSlowly(records: ReturnType<typeof startRecords>['records']) {
    const clock = createFakeClock();
    const writing = Promise.withResolvers<void>();
    const spool: SettlementSpool = {
      open: async () => ({ records: [], damaged: 0 }),
      append: async () => writing.promise,
      clear: async () => {},
      close: async () => {},
    };
    const tools = { clock, onFault: () => {}, isBroken: () => false, isLost: () => false };
    const kept = retrySettlements(records, { ...tools, spool, ready: Promise.resolve() });
    await kept.recover();
    return { kept, written: () => writing.resolve() };
  }

  test('resolves once it is made, also when that is before it is in the spool', async () => {
    const { records, state } = startRecords();
    const { kept, written } = await keepSlowly(records);
    state.fault = away;
    const settling = kept.settle(claimed('a'));
    await setImmediate();
    state.fault = null;
    expect(await kept.flush()).toBe(0);
    written();
    expect(await settling).toBe(0);
  });

  test('waits as long as the database does not take it', async () => {
    const { records, state } = startRecords();
    const kept = await keep(records, createFakeClock());
    state.fault = away;
    let isSettled = false;
    const settling = kept.settle(claimed('a')).then((unbooked) => {
      isSettled = true;
      return unbooked;
    });
    await setImmediate();
    expect(await kept.flush()).toBe(1);
    expect(isSettled).toBe(false);
    state.fault = null;
    await kept.flush();
    expect(await settling).toBe(0);
  });

  test('rejects when its claim was freed meanwhile, or when the process ends', async () => {
    const { records, state } = startRecords();
    const { kept, written } = await keepSlowly(records);
    state.fault = away;
    const settling = Promise.allSettled([kept.settle(claimed('a')), kept.settle(claimed('b'))]);
    await setImmediate();
    records.settle = async ({ requestId }) => {
      throw requestId === 'a' ? new ClaimLostError('a') : away;
    };
    await kept.flush();
    const closing = kept.close();
    written();
    expect(await closing).toEqual({ spooled: 1, lost: 0 });
    expect(
      (await settling).map((end) => (end.status === 'rejected' ? String(end.reason) : end.status)),
    ).toEqual([expect.stringContaining('was freed'), expect.stringContaining('closed')]);
  });
});

describe('settlements that the database does not take', () => {
  test('are kept in order, and made once it takes them again', async () => {
    const { records, settled, state } = startRecords();
    const clock = createFakeClock();
    const faults: string[] = [];
    const kept = await keep(records, clock, (message) => void faults.push(message));
    settled.length = 0;
    state.fault = new StorageError('database or disk is full');
    await kept.settle(record('a'));
    await kept.settle(record('b'));
    expect([kept.waiting, settled]).toEqual([2, []]);
    clock.advance(1_000);
    await eventually('they were offered in vain', () => kept.waiting === 2 && clock.scheduled === 1);
    state.fault = null;
    clock.advance(1_000);
    await eventually('they are made', () => kept.waiting === 0);
    expect(settled).toEqual(['a', 'b']);
    expect(kept.waiting).toBe(0);
    expect(clock.scheduled).toBe(0);
    expect(faults[0]).toContain('kept');
  });

  test('count as waiting while they are being offered, so that the sweep does not close their records', async () => {
    const { records, state } = startRecords();
    const offered = Promise.withResolvers<void>();
    const slow: typeof records = {
      ...records,
      async settle(settled) {
        if (state.fault !== null) throw state.fault;
        await offered.promise;
        return records.settle(settled);
      },
    };
    const clock = createFakeClock();
    const kept = await keep(slow, clock);
    state.fault = new StorageError('database is locked');
    await kept.settle(record('a'));
    state.fault = null;
    const flushed = kept.flush();
    clock.advance(700);
    expect([kept.isWaiting('a'), kept.waiting, kept.lagMs()]).toEqual([true, 1, 700]);
    offered.resolve();
    expect(await flushed).toBe(0);
    expect([kept.isWaiting('a'), kept.waiting, kept.lagMs()]).toEqual([false, 0, 0]);
  });

  test('are offered a last time when the process ends, with a count of those that still wait', async () => {
    const { records, settled, state } = startRecords();
    const kept = await keep(records, createFakeClock());
    settled.length = 0;
    state.fault = new StorageError('database is locked');
    await kept.settle(record('a'));
    expect(await kept.flush()).toBe(1);
    state.fault = null;
    expect(await kept.flush()).toBe(0);
    expect(settled).toEqual(['a']);
  });

  test('are made behind any number of others whose account is locked', async () => {
    const { records, settled } = startRecords();
    const state = { isAway: true };
    const locking: typeof records = {
      ...records,
      async settle(offered) {
        if (state.isAway) throw new StorageError('away');
        if (offered.requestId.startsWith('locked')) throw new KeyLockedError('locked', false);
        return records.settle(offered);
      },
    };
    const kept = await keep(locking, createFakeClock());
    for (let number = 0; number < 1_200; number++) await kept.settle(record(`locked ${number}`));
    await kept.settle(record('free'));
    state.isAway = false;
    expect(await kept.flush()).toBe(1_200);
    expect(settled).toContain('free');
  });

  test('are not kept when they fail for good: a second settlement stays an error', async () => {
    const { records, state } = startRecords();
    const kept = await keep(records, createFakeClock());
    state.fault = new Error('no open record of a');
    await expect(kept.settle(record('a'))).rejects.toThrow('no open record');
    expect(kept.waiting).toBe(0);
  });
});

describe('the state of the database', () => {
  test('follows the last record that was begun or settled, and settlements that wait', async () => {
    const { records, state } = startRecords();
    const clock = createFakeClock();
    const kept = await keep(records, clock);
    expect([kept.takesWrites, kept.writeFault]).toEqual([true, null]);
    state.fault = new StorageError('database or disk is full', 'full');
    await expect(kept.open(opened)).rejects.toThrow('full');
    expect([kept.takesWrites, kept.writeFault]).toEqual([false, 'its disk is full']);
    state.fault = null;
    await kept.open(opened);
    expect([kept.takesWrites, kept.writeFault]).toEqual([true, null]);

    state.fault = new StorageError('database is locked', 'locked');
    await kept.settle(record('a'));
    state.fault = null;
    await kept.open(opened);
    expect([kept.takesWrites, kept.writeFault]).toEqual([false, 'settlements wait for it']);
    await kept.flush();
    expect([kept.takesWrites, kept.writeFault]).toEqual([true, null]);
  });

  test('is no fault while settlements wait only for a lock on their account, and is one while others wait, too', async () => {
    const { records, state } = startRecords();
    const clock = createFakeClock();
    const kept = await keep(records, clock);
    const locked = new KeyLockedError('locked', true);
    const away = new StorageError('away');
    state.fault = locked;
    await kept.settle(record('a'));
    expect([kept.takesWrites, kept.writeFault, kept.waiting]).toEqual([true, null, 1]);
    clock.advance(700);
    expect([kept.isWaiting('a'), kept.lagMs()]).toEqual([true, 700]);
    state.fault = away;
    await kept.settle(record('b'));
    state.fault = null;
    await kept.checkWrites();
    expect([kept.takesWrites, kept.writeFault]).toEqual([false, 'settlements wait for it']);
    // What each waits for is what became of it last.
    state.fault = locked;
    expect(await kept.flush()).toBe(2);
    expect([kept.takesWrites, kept.writeFault]).toEqual([true, null]);
    state.fault = away;
    await kept.flush();
    state.fault = null;
    await kept.checkWrites();
    expect([kept.takesWrites, kept.writeFault]).toEqual([false, 'settlements wait for it']);
    expect(await kept.flush()).toBe(0);
    expect([kept.takesWrites, kept.writeFault]).toEqual([true, null]);
    state.fault = locked;
    await kept.settle(record('c'));
    state.fault = null;
    expect(await kept.flush()).toBe(0);
    state.fault = away;
    await kept.settle(record('d'));
    state.fault = null;
    await kept.checkWrites();
    expect([kept.takesWrites, kept.writeFault]).toEqual([false, 'settlements wait for it']);
  });

  test('is no fault, either, once a settlement that waited for three seconds turns out to wait for a lock', async () => {
    const { records } = startRecords();
    const clock = createFakeClock();
    const answered = Promise.withResolvers<number>();
    const kept = await keep({ ...records, settle: () => answered.promise }, clock);
    const settling = kept.settle(record('a'));
    clock.advance(3_000);
    await settling;
    expect([kept.waiting, kept.takesWrites]).toEqual([1, false]);
    answered.reject(new KeyLockedError('locked', true));
    await setImmediate();
    expect([kept.waiting, kept.takesWrites, kept.writeFault]).toEqual([1, true, null]);
  });

  test('is a fault while a write takes too long, before it has failed', async () => {
    const { records } = startRecords();
    const written = Promise.withResolvers<void>();
    const clock = createFakeClock();
    const kept = await keep({ ...records, checkWrites: () => written.promise }, clock);
    const checked = kept.checkWrites();
    clock.advance(500);
    expect(kept.takesWrites).toBe(true);
    clock.advance(1);
    expect([kept.takesWrites, kept.writeFault]).toEqual([false, 'it takes too long to answer']);
    written.resolve();
    await checked;
    expect(kept.takesWrites).toBe(true);
  });

  test('is a fault while the database is being opened, and once it can not be used any more', async () => {
    const { records } = startRecords();
    const opening = Promise.withResolvers<void>();
    const clock = createFakeClock();
    const state = { isBroken: false };
    const kept = retrySettlements(records, {
      clock,
      onFault: () => {},
      spool: null,
      ready: opening.promise,
      isBroken: () => state.isBroken,
      isLost: () => false,
    });
    const recovered = kept.recover();
    expect([kept.takesWrites, kept.isWaiting('any')]).toEqual([false, true]);
    opening.resolve();
    await recovered;
    expect([kept.takesWrites, kept.isWaiting('any')]).toEqual([true, false]);
    state.isBroken = true;
    expect([kept.takesWrites, kept.writeFault]).toEqual([false, 'it is not open']);
  });

  test('is no fault after a unit that the database rejects for its values', async () => {
    const { records, state } = startRecords();
    const kept = await keep(records, createFakeClock());
    state.fault = new StorageError('CHECK constraint failed: delta', 'rejected');
    await expect(kept.settle(record('a'))).rejects.toThrow('CHECK');
    expect([kept.waiting, kept.takesWrites]).toEqual([0, true]);
  });
});

describe('a database that does not answer', () => {
  /** Records whose writes never end until `answer` is called, with a count of those that were begun. */
  function startStuck() {
    const { records, settled } = startRecords();
    const answered = Promise.withResolvers<void>();
    const begun: string[] = [];
    const stuck: typeof records = {
      ...records,
      async open() {
        begun.push('open');
        await answered.promise;
        return records.open();
      },
      async settle(one) {
        begun.push(one.requestId);
        await answered.promise;
        return records.settle(one);
      },
      async checkWrites() {
        begun.push('check');
        await answered.promise;
      },
    };
    return { stuck, begun, settled, answer: answered.resolve, fail: answered.reject };
  }
  /** What a promise has come to, without waiting for it. */
  async function stateOf(promise: Promise<unknown>): Promise<unknown> {
    const found = promise.catch((error: unknown) => (error as StorageError).reason);
    await setImmediate();
    return Promise.race([found, Promise.resolve('waits')]);
  }

  test('has every waiting record refused after ten seconds, however many wait', async () => {
    const clock = createFakeClock();
    const { stuck, begun } = startStuck();
    const kept = await keep(stuck, clock);
    const opening = [kept.open(opened), kept.open(opened)];
    await setImmediate();
    clock.advance(9_999);
    expect(await Promise.all(opening.map(stateOf))).toEqual(['waits', 'waits']);
    clock.advance(1);
    expect(await Promise.all(opening.map(stateOf))).toEqual(['slow', 'slow']);
    expect(begun).toEqual(['open', 'open']);
    expect(clock.scheduled).toBe(0);
  });

  test('is given no more records behind a write that is stuck, and takes them again once it ended', async () => {
    const clock = createFakeClock();
    const { stuck, begun, answer } = startStuck();
    const kept = await keep(stuck, clock);
    const probe = kept.checkWrites();
    clock.advance(3_001);
    expect(await stateOf(kept.open(opened))).toBe('slow');
    expect(begun).toEqual(['check']);
    answer();
    await probe;
    expect(await kept.open(opened)).toMatchObject({ granted: true });
  });

  test('is tried with one record at a time after a write has failed', async () => {
    const clock = createFakeClock();
    const { stuck, begun, fail } = startStuck();
    const kept = await keep(stuck, clock);
    const first = kept.open(opened);
    await setImmediate();
    fail(new StorageError('database is locked', 'locked'));
    expect(await stateOf(first)).toBe('locked');
    const trial = kept.open(opened);
    await expect(kept.open(opened)).rejects.toMatchObject({
      reason: 'locked',
      message: expect.stringMatching(/^the last write failed.*: database is locked$/),
    });
    expect(await stateOf(trial)).toBe('locked');
    expect(begun).toEqual(['open', 'open']);
  });

  test('may begin a record after its request was refused: the sweep closes it and gives its hold back', async () => {
    const engine = openTestEngine(':memory:');
    onTestFinished(() => engine.close());
    const store = createStore(engine, { nextId: () => 'posting', now: () => 1, report: () => {} });
    await store.createKey({ ...payingKey, createdAtMs: 1 }, 'hash', 1_000);
    const answered = Promise.withResolvers<void>();
    const late = { ...store, open: (one: OpenedRecord) => answered.promise.then(() => store.open(one)) };
    const clock = createFakeClock();
    const tools = { clock, onFault: () => {}, spool: null, isBroken: () => false, isLost: () => false };
    const kept = retrySettlements(late, { ...tools, ready: engine.ready });
    const id = idOf('b');
    await kept.recover();
    const refused = kept.open({ ...opened, requestId: id, hold: { nanos: 700, leastNanos: 1 } });
    await setImmediate();
    clock.advance(10_000);
    await expect(refused).rejects.toThrow('too long');
    answered.resolve();
    await eventually('it is begun late', async () => (await store.countOpen()) === 1);
    expect((await store.accounts(['key_a'])).get('key_a')?.heldNanos).toBe(700);
    const swept = { ...record(id), outcome: 'lost', chargeNanos: 0 } as const;
    expect(await store.isSettled(swept)).toBe(false);
    expect(await sweepOrphans(store, (one) => kept.isWaiting(one), 60_000)).toBe(1);
    expect((await store.accounts(['key_a'])).get('key_a')).toMatchObject({
      balanceNanos: 1_000,
      heldNanos: 0,
    });
    expect(await store.isSettled(swept)).toBe(true);
    // Another ending, which the record should have had, was not made.
    expect(await store.isSettled(record(id))).toBe(false);
  });

  test('is given no record whose request was refused while the start was awaited', async () => {
    const clock = createFakeClock();
    const { records } = startRecords();
    const opening = Promise.withResolvers<void>();
    let begun = 0;
    const counted: typeof records = { ...records, open: () => (begun++, records.open()) };
    const tools = { clock, onFault: () => {}, spool: null, isBroken: () => false, isLost: () => false };
    const kept = retrySettlements(counted, { ...tools, ready: opening.promise });
    const recovered = kept.recover();
    const refused = kept.open(opened);
    clock.advance(10_000);
    expect(await stateOf(refused)).toBe('slow');
    opening.resolve();
    await recovered;
    await setImmediate();
    expect(begun).toBe(0);
  });

  test('has the settlements that wait for it written to the spool after three seconds, and makes each once', async () => {
    const clock = createFakeClock();
    const { stuck, begun, settled, answer } = startStuck();
    const held: string[] = [];
    const spool: SettlementSpool = {
      open: async () => ({ records: [], damaged: 0 }),
      append: async ({ requestId }) => void held.push(requestId),
      clear: async () => void held.splice(0),
      close: async () => {},
    };
    const tools = { clock, onFault: () => {}, isBroken: () => false, isLost: () => false };
    const kept = retrySettlements(stuck, { ...tools, spool, ready: Promise.resolve() });
    await kept.recover();
    settled.length = 0;
    const settling = kept.settle(record('a'));
    clock.advance(2_999);
    await setImmediate();
    expect(held).toEqual([]);
    clock.advance(1);
    await settling;
    expect([held, kept.waiting, kept.isWaiting('a')]).toEqual([['a'], 1, true]);
    clock.advance(1_000);
    answer();
    await eventually('it is made', () => kept.waiting === 0 && held.length === 0);
    expect([begun, settled]).toEqual([['a'], ['a']]);
  });

  test('may have made a settlement without an answer: a second offer of it is no fault', async () => {
    const { records, state } = startRecords();
    const faults: string[] = [];
    const clock = createFakeClock();
    const known: typeof records = {
      ...records,
      isSettled: async ({ requestId }) => requestId === 'made',
      async settle(one) {
        await records.settle(one);
        throw new Error(`no open record of ${one.requestId}`);
      },
    };
    const kept = await keep(
      known,
      clock,
      (message, error) => void faults.push(`${message}: ${String(error)}`),
    );
    state.fault = new StorageError('the database thread ended');
    await kept.settle(record('made'));
    for (const id of ['lost', 'lost too']) await kept.settle(record(id));
    faults.length = 0;
    state.fault = null;
    expect(await kept.flush()).toBe(0);
    // Each names its request: it is a charge that is given up.
    expect(faults).toEqual(
      ['lost', 'lost too'].map((id) => `a kept settlement could not be made: Error: no open record of ${id}`),
    );
  });

  test('is given no new records once it is lost, and still takes settlements', async () => {
    const { records, settled } = startRecords();
    let isLost = false;
    const tools = { clock: createFakeClock(), onFault: () => {}, spool: null, ready: Promise.resolve() };
    const kept = retrySettlements(records, { ...tools, isBroken: () => false, isLost: () => isLost });
    await kept.recover();
    settled.length = 0;
    isLost = true;
    await expect(kept.open(opened)).rejects.toThrow('lost');
    await kept.settle(record('a'));
    expect(settled).toEqual(['a']);
  });
});

describe('many kept settlements', () => {
  test('are offered together, and one that is rejected for good delays no other', async () => {
    const { records, state } = startRecords();
    let [atOnce, mostAtOnce, offered] = [0, 0, 0];
    const counted: typeof records = {
      ...records,
      async settle(settled) {
        offered++;
        mostAtOnce = Math.max(mostAtOnce, ++atOnce);
        await Promise.resolve();
        atOnce--;
        if (settled.requestId === '7' && state.fault === null) throw new StorageError('no', 'rejected');
        return records.settle(settled);
      },
    };
    const faults: string[] = [];
    const kept = await keep(counted, createFakeClock(), (message) => void faults.push(message));
    state.fault = new StorageError('database or disk is full', 'full');
    for (let number = 0; number < 1_200; number++) await kept.settle(record(String(number)));
    offered = 0;
    expect(await kept.flush()).toBe(1_200);
    expect(offered).toBe(500);
    state.fault = null;
    expect(await kept.flush()).toBe(0);
    expect(mostAtOnce).toBe(500);
    expect(faults).toEqual([
      'the database does not take settlements: they are kept and offered again',
      'a kept settlement could not be made',
    ]);
  });
});

describe('the start and the end', () => {
  /** A spool in memory that holds some records, and takes others unless it is broken. */
  function startSpool(left: readonly SettledRecord[], isBroken = false) {
    const held = left.map(({ requestId }) => requestId);
    const spool: SettlementSpool = {
      open: async () => ({ records: left, damaged: 0 }),
      async append({ requestId }) {
        if (isBroken) throw new Error('input/output error');
        held.push(requestId);
      },
      clear: async () => void held.splice(0),
      close: async () => {},
    };
    return { spool, held };
  }
  const keepWith = (records: ReturnType<typeof startRecords>['records'], spool: SettlementSpool) =>
    retrySettlements(records, {
      clock: createFakeClock(),
      onFault: () => {},
      spool,
      ready: Promise.resolve(),
      isBroken: () => false,
      isLost: () => false,
    });

  test('make the settlements of the spool, close the records left open, and only then begin a record', async () => {
    const { records, settled } = startRecords();
    const { spool, held } = startSpool([record('a'), record('b')]);
    const began = {
      ...records,
      async open() {
        settled.push('begun');
        return records.open();
      },
    };
    const kept = keepWith(began, spool);
    const opening = kept.open(opened);
    await setImmediate();
    expect(settled).toEqual([]);
    await kept.recover();
    await opening;
    expect([settled, held]).toEqual([['a', 'b', 'lost ones', 'begun'], []]);
  });

  test('close nothing as lost while settlements of the spool still wait for the database', async () => {
    const { records, settled, state } = startRecords();
    const { spool, held } = startSpool([record('a')]);
    state.fault = new StorageError('database or disk is full', 'full');
    const kept = keepWith(records, spool);
    await kept.recover();
    expect([settled, held, kept.isWaiting('a'), kept.isWaiting('other')]).toEqual([[], ['a'], true, false]);
    state.fault = null;
    await kept.flush();
    expect([settled, held]).toEqual([['a'], []]);
  });

  test.each([
    ['is safe in the spool', false, { spooled: 1, lost: 0 }],
    ['is lost when the spool can’t be written, either', true, { spooled: 0, lost: 1 }],
  ])('say that a settlement which fails while the process ends %s', async (_name, isBroken, count) => {
    const { records } = startRecords();
    const { spool } = startSpool([], isBroken);
    const failing = Promise.withResolvers<number>();
    const kept = keepWith({ ...records, settle: () => failing.promise }, spool);
    await kept.recover();
    const settling = kept.settle(record('a'));
    const closed = kept.close();
    failing.reject(new StorageError('database is locked', 'locked'));
    expect(await closed).toEqual(count);
    await settling;
  });
});
