import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { monitorLedger } from '../../src/background/monitor-ledger.ts';
import type { LedgerMonitor } from '../../src/background/monitor-ledger.ts';
import type { SharedDuty } from '../../src/domain/ports/shared-changes.ts';
import type { LedgerAudit } from '../../src/domain/ports/ledger-audit.ts';
import { auditAccounts, verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { fillDatabase, keyIdOf } from '../support/filled-database.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { startGateway } from '../support/test-gateway.ts';

const auditMs = 600_000;
const checkMs = 15_000;

const records = {
  listClosable: async () => [],
  closeAsLost: async () => 0,
  countOpen: async () => 3,
  countLowBalances: async () => 1,
  countWarnedBudgets: async () => 2,
};

const account = {
  keyId: 'key_a',
  balanceNanos: 10,
  heldNanos: 0,
  spentNanos: 0,
  postings: 1,
  lastNumber: 1,
  ledgerNanos: 7,
  chargedNanos: 0,
  usageNanos: 0,
  ledgerRows: 1,
  doubledRows: 0,
  foldedCreditNanos: 0,
  keptCreditNanos: 0,
  openHoldNanos: 0,
};

/** Monitors a ledger whose accounts are read by `audit`. */
async function monitor(
  audit: LedgerAudit['audit'],
  ready: Promise<void> = Promise.resolve(),
  duty: SharedDuty | null = null,
) {
  const clock = createFakeClock();
  const faults: string[] = [];
  const none = async function* () {};
  const ledger: LedgerAudit = { audit, budgets: none, spending: none, settled: none, sealFaults: none };
  const watched: LedgerMonitor = monitorLedger(records, ledger, {
    clock,
    ready,
    lowBalanceNanos: () => 5,
    isPending: () => false,
    onExpired: () => {},
    onFault: (message) => void faults.push(message),
    duty,
  });
  await ready.catch(() => {});
  return { clock, faults, watched };
}

describe('the ledger monitor', () => {
  test('shows no imbalance before an audit has succeeded, nor after one that failed', async () => {
    let broken = true;
    const { clock, faults, watched } = await monitor(async function* () {
      if (broken) throw new Error('the disk is away');
      yield [account];
    });
    expect(watched.figures?.imbalanceNanos).toBeNull();
    clock.advance(0);
    await eventually('the audit failed', () => faults.length > 0);
    expect(faults).toEqual(['ledger audit failed']);
    expect(watched.figures).toEqual({ openHolds: 3, lowBalances: 1, warnedBudgets: 2, imbalanceNanos: null });
    broken = false;
    clock.advance(auditMs);
    await eventually('the audit succeeded', () => watched.figures?.imbalanceNanos === 3);
    broken = true;
    clock.advance(auditMs);
    await eventually('the audit failed again', () => watched.figures?.imbalanceNanos === null);
    await watched.stop();
  });

  test('reads nothing of a database that can not be opened, and leaves the report of that to its opening', async () => {
    let reads = 0;
    const { clock, faults, watched } = await monitor(
      async function* () {
        reads++;
        yield [account];
      },
      Promise.reject(new Error('the disk is away')),
    );
    clock.advance(auditMs);
    await watched.stop();
    expect(reads).toBe(0);
    expect(faults).toEqual([]);
  });

  test('counts open records while an audit is still under way', async () => {
    const { clock, watched } = await monitor(async function* (pause) {
      await pause();
      yield [account];
    });
    clock.advance(0);
    await eventually('it is counted', () => watched.figures?.openHolds === 3);
    expect(watched.figures?.imbalanceNanos).toBeNull();
    await watched.stop();
  });

  test('ends an audit between two of its reads when it is stopped, and reports no fault', async () => {
    let reads = 0;
    const { clock, faults, watched } = await monitor(async function* (pause) {
      for (;;) {
        reads++;
        yield [];
        await pause();
      }
    });
    clock.advance(0);
    await eventually('it reads', () => reads === 1);
    await watched.stop();
    expect(reads).toBe(1);
    expect(faults).toEqual([]);
  });
});

describe('the ledger monitor of processes that share a database', () => {
  test('audits and shows figures as long as that is its duty', async () => {
    let [isOurs, audits, asked] = [false, 0, 0];
    const duty: SharedDuty = {
      async isOurs() {
        asked++;
        return isOurs;
      },
    };
    const { clock, faults, watched } = await monitor(
      async function* (pause) {
        audits++;
        yield [account];
        await pause();
      },
      Promise.resolve(),
      duty,
    );
    onTestFinished(() => watched.stop());
    const check = async (): Promise<void> => {
      await setImmediate();
      const before = asked;
      clock.advance(checkMs);
      await eventually('it has asked for its duty', () => asked > before);
      await setImmediate();
    };
    await check();
    expect([watched.figures, audits]).toEqual([null, 0]);

    isOurs = true;
    await check();
    expect(watched.figures).toEqual({ openHolds: 3, lowBalances: 1, warnedBudgets: 2, imbalanceNanos: null });
    clock.advance(0);
    await eventually('an audit is under way', () => audits === 1);
    clock.advance(20);
    await eventually('it has succeeded', () => watched.figures?.imbalanceNanos === 3);
    await check();
    expect([watched.figures?.imbalanceNanos, audits]).toEqual([3, 1]);
    clock.advance(auditMs);
    await eventually('the next audit is under way', () => audits === 2);

    isOurs = false;
    await check();
    expect(watched.figures).toBeNull();
    clock.advance(auditMs);
    await check();
    // The audit that another process takes over was given up, and has not failed.
    expect([audits, new Set(faults)]).toEqual([2, new Set(['ledger imbalance'])]);

    isOurs = true;
    await check();
    expect(watched.figures).toMatchObject({ imbalanceNanos: null });
    clock.advance(0);
    await eventually('an audit begins at once', () => audits === 3);
  });
});

describe('an audit of many accounts', () => {
  /** Charges some accounts as a settlement does, which writes the record that is the row of the ledger, too. */
  const chargeTo = (accounts: string): string => `BEGIN IMMEDIATE;
    UPDATE accounts SET balance = balance - 30000, spent = spent + 30000, postings = postings + 1 WHERE ${accounts};
    INSERT INTO record_rows (created_at, tail, account, kind, charge, charge_number, input_tokens, output_tokens, queued_ms,
        settled_ms, total_ms)
      SELECT 1700000000000, randomblob(10), accounts.number, 1, 30000, postings, 10, 10, 0, 1, 1
      FROM accounts WHERE ${accounts};
    COMMIT`;

  /** A database with more than one read takes of each: accounts, rows of the ledger, and records. Each test copies it. */
  let filledFolder: string;
  beforeAll(async () => {
    filledFolder = mkdtempSync(join(tmpdir(), 'textgate-'));
    const file = join(filledFolder, 'textgate.db');
    const engine = openTestEngine(file);
    await engine.ready;
    fillDatabase(file, { keys: 1_200, records: 5_000 });
    await engine.close();
  });
  afterAll(() => rmSync(filledFolder, { recursive: true }));

  async function openFilled() {
    const file = join(makeTemporaryFolder(), 'textgate.db');
    copyFileSync(join(filledFolder, 'textgate.db'), file);
    const engine = openTestEngine(file);
    onTestFinished(() => engine.close());
    await engine.ready;
    const change = new DatabaseSync(file, { timeout: 5_000 });
    onTestFinished(() => change.close());
    return { audit: createLedgerAudit(engine), engine, change };
  }

  test('reads a page at a time with pauses, and never on the connection of the commits', async () => {
    const { engine } = await openFilled();
    const refusing = {
      ...engine,
      run: () => Promise.reject(new Error('an audit must not delay settlements')),
    };
    const audit = createLedgerAudit(refusing);
    let pauses = 0;
    const found = await verifyLedger(audit, async () => void pauses++);
    expect(found).toEqual({ accounts: 1_200, records: 5_000, imbalanceNanos: 0, faults: [] });
    // Three reads of the accounts, twelve of the ledgers of a hundred of them each, and 25 of the records.
    expect(pauses).toBeGreaterThan(25);
    expect(pauses).toBeLessThan(60);
  });

  test('sees each account at one moment, though requests are charged while it runs', async () => {
    const { audit, change } = await openFilled();
    let number = 0;
    const { faults } = await verifyLedger(audit, async () => {
      for (const keyId of [0, number++ % 1_200, 1_199].map(keyIdOf))
        change.exec(chargeTo(`key_id = '${keyId}'`));
    });
    expect(faults).toEqual([]);
  });

  test.each([
    ['a balance', `UPDATE accounts SET balance = balance + 1 WHERE key_id = '${keyIdOf(1_100)}'`, 1],
    ['what was spent', `UPDATE accounts SET spent = spent + 2 WHERE key_id = '${keyIdOf(3)}'`, 2],
    ['usage', `UPDATE usage_hours SET charge = charge - 3 WHERE key_id = '${keyIdOf(3)}'`, 3],
    ['a hold', `UPDATE accounts SET held = 5, balance = balance - 5 WHERE key_id = '${keyIdOf(3)}'`, 5],
    [
      'a row of the ledger',
      `DROP TRIGGER ledger_is_shortened_by_folds_alone; DELETE FROM ledger_rows WHERE key_id = '${keyIdOf(899)}' AND number = 1`,
      1_000_000_000_000 + 120_000 + 1,
    ],
  ])('finds %s that was changed by hand', async (_what, sql, imbalance) => {
    const { audit, change } = await openFilled();
    change.exec(sql);
    const { imbalanceNanos, faults } = await verifyLedger(audit);
    expect(faults.length).toBeGreaterThan(0);
    expect(imbalanceNanos).toBe(imbalance);
  });

  const isOfSeven = `account = (SELECT number FROM accounts WHERE key_id = '${keyIdOf(7)}')`;

  test.each([
    [
      'of the middle, and names the hole',
      `DELETE FROM record_rows WHERE ${isOfSeven} AND charge_number = 3`,
      ['was posted to 6 times, but has 5 ledger rows', 'its ledger lacks 1 of the numbers from 1 to 6'],
      1,
    ],
    [
      'of the end',
      `DELETE FROM record_rows WHERE ${isOfSeven} AND charge_number = 6`,
      ['was posted to 6 times, but has 5 ledger rows'],
      1,
    ],
    [
      'of the middle that the account forgot',
      `DELETE FROM record_rows WHERE ${isOfSeven} AND charge_number = 3;
       UPDATE accounts SET postings = 5 WHERE key_id = '${keyIdOf(7)}'`,
      ['its ledger lacks 1 of the numbers from 1 to 6'],
      1,
    ],
    [
      'too many, as of another hand',
      `INSERT INTO ledger_rows (key_id, number, created_at, kind, delta, posting)
       VALUES ('${keyIdOf(7)}', 9, 1, 'credit', 0, 'p')`,
      ['was posted to 6 times, but has 7 ledger rows', 'its ledger lacks 2 of the numbers from 1 to 9'],
      2,
    ],
    [
      'that stands for another one, which is missing',
      `UPDATE record_rows SET charge_number = NULL WHERE ${isOfSeven} AND charge_number = 3;
       INSERT INTO ledger_rows (key_id, number, created_at, kind, delta, posting)
       VALUES ('${keyIdOf(7)}', 4, 1, 'credit', 0, 'p')`,
      [
        'was posted to 6 times, but has 5 ledger rows',
        '1 of its ledger rows have the number of another one',
        'its ledger lacks 1 of the numbers from 1 to 6',
      ],
      1,
    ],
    [
      'that has the number of another one',
      `INSERT INTO ledger_rows (key_id, number, created_at, kind, delta, posting)
       VALUES ('${keyIdOf(7)}', 4, 1, 'credit', 0, 'p')`,
      ['1 of its ledger rows have the number of another one'],
      1,
    ],
  ])('finds by its number a row of the ledger %s', async (_what, sql, messages, imbalance) => {
    const { audit, change } = await openFilled();
    // What the row said stays in the sums: only its number tells.
    change.exec(`DROP TRIGGER ledger_is_never_changed; DROP TRIGGER charge_is_never_changed;
      DROP TRIGGER charge_is_kept_without_its_record;
      UPDATE ledger_rows SET delta = delta - 60000 WHERE key_id = '${keyIdOf(7)}' AND number = 1;
      UPDATE record_rows SET charge = 0 WHERE ${isOfSeven} AND charge_number IN (3, 6);
      UPDATE accounts SET spent = spent - 60000 WHERE key_id = '${keyIdOf(7)}'; ${sql}`);
    const found: string[] = [];
    const { imbalanceNanos } = await auditAccounts(audit, (fault) => void found.push(fault));
    expect(found).toEqual(messages.map((message) => `${keyIdOf(7)}: ${message}`));
    expect(imbalanceNanos).toBe(imbalance);
  });

  test('adds up an account with more rows than one read takes, however many come meanwhile', async () => {
    const file = join(makeTemporaryFolder(), 'textgate.db');
    const engine = openTestEngine(file);
    onTestFinished(() => engine.close());
    await engine.ready;
    fillDatabase(file, { keys: 2, records: 9_001 });
    const change = new DatabaseSync(file, { timeout: 5_000 });
    onTestFinished(() => change.close());
    let charges = 0;
    const found = await auditAccounts(
      createLedgerAudit(engine),
      () => {},
      async () => {
        charges++;
        change.exec(chargeTo('balance > 0'));
      },
    );
    expect(found).toEqual({ accounts: 2, imbalanceNanos: 0 });
    // Between the six reads of 4,502 rows of one and 4,501 of the other, of which a read takes 2,000.
    expect(charges).toBe(5);
  });

  test.each([
    [
      'is not in the ledger',
      'charge_number = NULL',
      [
        /^key_\d+: spent 120000, but was charged 90000$/,
        /^key_\d+: was posted to 5 times, but has 4 ledger rows$/,
        /^key_\d+: its ledger lacks 1 of the numbers from 1 to 5$/,
        /^key_\d+: balance and holds are 1000000000000, but its ledger says 1000000030000$/,
        /^req_\w+: was charged 30000, but its ledger row says 0$/,
      ],
    ],
    [
      'was changed',
      'charge = 4',
      [
        /^key_\d+: spent 120000, but was charged 90004$/,
        /^key_\d+: spent 120000, but its usage says 90004$/,
        /^key_\d+: balance and holds are 1000000000000, but its ledger says 1000000029996$/,
        /^req_\w+: its charge is not what its outcome and its tokens cost$/,
      ],
    ],
  ])('finds a record whose charge %s', async (_what, changed, messages) => {
    const { audit, change } = await openFilled();
    change.exec(`DROP TRIGGER charge_is_never_changed;
      UPDATE record_rows SET ${changed} WHERE created_at = 1700000000776`);
    const { faults } = await verifyLedger(audit);
    expect(faults).toEqual(messages.map((message): unknown => expect.stringMatching(message)));
  });
});

describe('/metrics', () => {
  test('shows an imbalance of NaN, and not of 0, while the ledger can not be audited', async () => {
    const file = join(makeTemporaryFolder(), 'textgate.db');
    const clock = createFakeClock();
    const gateway = await startGateway({ storage: file, clock });
    onTestFinished(() => gateway.close());
    const imbalance = async (): Promise<string | undefined> => {
      const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
      return /^textgate_ledger_imbalance_nanos (\S+)$/m.exec(text)?.[1];
    };
    expect(Number(await imbalance())).toBeNaN();
    clock.advance(0);
    await eventually('the audit has succeeded', async () => (await imbalance()) === '0');
    const database = new DatabaseSync(file, { timeout: 5_000 });
    database.exec('ALTER TABLE ledger_rows RENAME TO hidden');
    clock.advance(auditMs);
    await eventually('the audit has failed', async () => Number.isNaN(Number(await imbalance())));
    database.exec('ALTER TABLE hidden RENAME TO ledger_rows');
    database.close();
    clock.advance(auditMs);
    await eventually('the audit has succeeded again', async () => (await imbalance()) === '0');
  });
});
