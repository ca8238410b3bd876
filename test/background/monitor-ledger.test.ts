import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import { monitorLedger } from '../../src/background/monitor-ledger.ts';
import type { LedgerMonitor } from '../../src/background/monitor-ledger.ts';
import type { LedgerAudit } from '../../src/domain/ports/ledger-audit.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger-audit.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { fillDatabase, keyIdOf } from '../support/filled-database.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { startGateway } from '../support/test-gateway.ts';

const auditMs = 600_000;

const records = {
  listClosable: async () => [],
  closeAsLost: async () => 0,
  countOpen: async () => 3,
  countLowBalances: async () => 1,
};

const account = {
  keyId: 'key_a',
  balanceNanos: 10,
  heldNanos: 0,
  spentNanos: 0,
  postings: 1,
  ledgerNanos: 7,
  chargedNanos: 0,
  ledgerRows: 1,
  openHoldNanos: 0,
};

/** Monitors a ledger whose accounts are read by `audit`. */
async function monitor(audit: LedgerAudit['audit'], ready: Promise<void> = Promise.resolve()) {
  const clock = createFakeClock();
  const faults: string[] = [];
  const ledger: LedgerAudit = { audit, settled: async function* () {} };
  const watched: LedgerMonitor = monitorLedger(records, ledger, clock, {
    ready,
    lowBalanceNanos: () => 5,
    isPending: () => false,
    onExpired: () => {},
    onFault: (message) => void faults.push(message),
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
    expect(watched.figures.imbalanceNanos).toBeNull();
    clock.advance(0);
    await eventually('the audit failed', () => faults.length > 0);
    expect(faults).toEqual(['ledger audit failed']);
    expect(watched.figures).toEqual({ openHolds: 3, lowBalances: 1, imbalanceNanos: null });
    broken = false;
    clock.advance(auditMs);
    await eventually('the audit succeeded', () => watched.figures.imbalanceNanos === 3);
    broken = true;
    clock.advance(auditMs);
    await eventually('the audit failed again', () => watched.figures.imbalanceNanos === null);
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
    await eventually('it is counted', () => watched.figures.openHolds === 3);
    expect(watched.figures.imbalanceNanos).toBeNull();
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

describe('an audit of many accounts', () => {
  /** More than one read takes of each: accounts, rows of the ledger, and records. */
  async function openFilled() {
    const file = join(makeTemporaryFolder(), 'textgate.db');
    const engine = openTestEngine(file);
    onTestFinished(() => engine.close());
    await engine.ready;
    fillDatabase(file, { keys: 1_200, records: 5_000 });
    const change = new DatabaseSync(file, { timeout: 5_000 });
    onTestFinished(() => change.close());
    return { audit: createLedgerAudit(engine), engine, change };
  }

  test('reads a page at a time with pauses, and never on the connection of the commits', async () => {
    const { engine } = await openFilled();
    const audit = createLedgerAudit({
      ...engine,
      run: () => Promise.reject(new Error('an audit must not delay settlements')),
    });
    let pauses = 0;
    const found = await verifyLedger(audit, async () => void pauses++);
    expect(found).toEqual({ accounts: 1_200, records: 5_000, imbalanceNanos: 0, faults: [] });
    // Three reads of the ledger's 6,200 rows after the first, three of the accounts, and 25 of the records.
    expect(pauses).toBeGreaterThan(25);
    expect(pauses).toBeLessThan(60);
  });

  test('sees each account at one moment, though requests are charged while it runs', async () => {
    const { audit, change } = await openFilled();
    const charge = (keyId: string): void => {
      change.exec(`BEGIN IMMEDIATE;
        UPDATE accounts SET balance = balance - 7, spent = spent + 7, postings = postings + 1 WHERE key_id = '${keyId}';
        INSERT INTO ledger (key_id, created_at, kind, delta, posting) VALUES ('${keyId}', 1, 'charge', -7, 'p');
        COMMIT`);
    };
    let number = 0;
    const { faults } = await verifyLedger(audit, async () => {
      for (const keyId of [0, number++ % 1_200, 1_199].map(keyIdOf)) charge(keyId);
    });
    expect(faults).toEqual([]);
  });

  test.each([
    ['a balance', `UPDATE accounts SET balance = balance + 1 WHERE key_id = '${keyIdOf(1_100)}'`, 1],
    ['what was spent', `UPDATE accounts SET spent = spent + 2 WHERE key_id = '${keyIdOf(3)}'`, 2],
    ['a hold', `UPDATE accounts SET held = 5, balance = balance - 5 WHERE key_id = '${keyIdOf(3)}'`, 5],
    [
      'a row of the ledger',
      `DROP TRIGGER ledger_is_never_shortened; DELETE FROM ledger WHERE seq = 900`,
      1_000_000_000_000 + 120_000 + 1,
    ],
  ])('finds %s that was changed by hand', async (_what, sql, imbalance) => {
    const { audit, change } = await openFilled();
    change.exec(sql);
    const { imbalanceNanos, faults } = await verifyLedger(audit);
    expect(faults.length).toBeGreaterThan(0);
    expect(imbalanceNanos).toBe(imbalance);
  });

  test('finds a record whose charge is not in the ledger', async () => {
    const { audit, change } = await openFilled();
    change.exec(`UPDATE records SET charge = 4 WHERE rowid = 777`);
    expect((await verifyLedger(audit)).faults).toHaveLength(2);
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
    database.exec('ALTER TABLE ledger RENAME TO hidden');
    clock.advance(auditMs);
    await eventually('the audit has failed', async () => Number.isNaN(Number(await imbalance())));
    database.exec('ALTER TABLE hidden RENAME TO ledger');
    database.close();
    clock.advance(auditMs);
    await eventually('the audit has succeeded again', async () => (await imbalance()) === '0');
  });
});
