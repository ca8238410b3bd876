import { appendFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { createSettlementSpool } from '../../src/storage/spool/settlement-spool.ts';
import type { SettlementSpool } from '../../src/domain/ports/records.ts';
import { writeSpoolLine } from '../../src/storage/spool/spool-lines.ts';
import { checksumOf } from '../../src/shared/checksum.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { joinStore } from '../conformance/store.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { requestName } from '../support/request-ids.ts';
import { settledRecord as record } from '../support/settled-record.ts';
import {
  beginningOf,
  budgetTerms,
  budgetedRecord,
  groupTerms,
  openedRecord,
  payingKey,
  plainAttempt,
  settlementOf,
} from '../support/stored-rows.ts';

/** A line of any content whose checksum is right. */
function intact(content: unknown): string {
  const json = JSON.stringify(content);
  return `${checksumOf(json)} ${json}\n`;
}

const reservedBytes = 4 * 1_024 * 1_024;

let database: string;
let file: string;
beforeEach(() => {
  database = join(makeTemporaryFolder(), 'data', 'textgate.db');
  file = `${database}-settlements`;
  mkdirSync(dirname(database));
  writeFileSync(database, '');
});

/** Opens the spool as a new process would; `left` are the names of what it held, and how much was damaged. */
async function open(faults: string[] = []): Promise<{ spool: SettlementSpool; left: unknown[] }> {
  const spool = createSettlementSpool(file, (message) => void faults.push(message));
  const { records, damaged } = await spool.open();
  onTestFinished(() => spool.close());
  return { spool, left: [...records.map(({ requestId }) => requestName(requestId)), damaged] };
}

describe('the spool of settlements', () => {
  test('keeps settlements whole and in order for the next process', async () => {
    const { spool } = await open();
    await Promise.all([spool.append(record('a')), spool.append(record('b'))]);
    await spool.append(record('c'));
    const next = createSettlementSpool(file, () => {});
    expect(await next.open()).toEqual({ records: ['a', 'b', 'c'].map(record), damaged: 0 });
    await next.close();
  });

  test('keeps how a settlement was begun, with all budgets in which it counts', async () => {
    const [ofKey, ofGroup] = [
      { ...budgetTerms, holdNanos: 3 },
      { ...groupTerms, holdNanos: 3 },
    ];
    const counted = [[], [ofKey], [ofGroup], [ofKey, ofGroup]].map((budgets, at) =>
      Object.assign(record(String(at)), { begun: { ...beginningOf(openedRecord), budgets } }),
    );
    writeFileSync(file, counted.map(writeSpoolLine).join(''));
    const spool = createSettlementSpool(file, () => {});
    expect(await spool.open()).toEqual({ records: counted, damaged: 0 });
    await spool.close();
  });

  test('has settlements that count in the budgets with which they were begun', async () => {
    writeFileSync(
      file,
      writeSpoolLine({ ...settlementOf(budgetedRecord), begun: beginningOf(budgetedRecord) }),
    );
    const spool = createSettlementSpool(file, () => {});
    const { records, damaged } = await spool.open();
    await spool.close();
    expect([records.length, damaged]).toEqual([1, 0]);
    const engine = openTestEngine(':memory:');
    onTestFinished(() => engine.close());
    await engine.ready;
    const store = joinStore(engine);
    await store.createKey(payingKey, 'hash', 1_000);
    await store.open(budgetedRecord);
    for (const taken of records) await store.settle(taken);
    const { id } = budgetTerms;
    expect((await store.budgetPeriods([id])).get(id)).toMatchObject({ spentNanos: 1, heldNanos: 0 });
    const { faults } = await verifyLedger(createLedgerAudit(engine));
    expect(faults.filter((fault) => fault.startsWith('budget'))).toEqual([]);
  });

  test('allocates its space on the disk when it is opened, readable for its owner alone, and keeps it', async () => {
    const { spool } = await open();
    const { size, blocks, mode } = statSync(file);
    expect([size, mode & 0o777]).toEqual([reservedBytes, 0o600]);
    expect(blocks * 512).toBeGreaterThanOrEqual(reservedBytes);
    await spool.append(record('a'));
    await spool.clear();
    expect(statSync(file).size).toBe(reservedBytes);
  });

  test('is empty after a clear, except for settlements appended after it', async () => {
    const { spool } = await open();
    void spool.append(record('a'));
    const emptied = spool.clear();
    const appended = spool.append(record('b'));
    await Promise.all([emptied, appended]);
    expect((await open()).left).toEqual(['b', 0]);
    await spool.clear();
    expect(readFileSync(file).every((byte) => byte === 0)).toBe(true);
  });

  test('skips a torn line, and loses nothing that is appended behind it', async () => {
    writeFileSync(file, writeSpoolLine(record('a')) + writeSpoolLine(record('b')).slice(0, -20));
    const { spool, left } = await open();
    expect(left).toEqual(['a', 1]);
    await spool.append(record('c'));
    expect((await open()).left).toEqual(['a', 'c', 1]);
  });

  test('keeps a last line without its newline, and writes nothing to a torn file at the start', async () => {
    const text = writeSpoolLine(record('a')) + writeSpoolLine(record('b')).trimEnd();
    writeFileSync(file, text);
    const { spool, left } = await open();
    expect(left).toEqual(['a', 'b', 0]);
    expect(readFileSync(file, 'utf8').replace(/\0+$/, '')).toBe(text);
    await spool.append(record('c'));
    expect((await open()).left).toEqual(['a', 'b', 'c', 0]);
  });

  test.each([
    ['it', () => rmSync(file)],
    ['its folder', () => rmSync(dirname(file), { recursive: true })],
  ])('is written anew, with all waiting settlements, when %s was deleted', async (_what, remove) => {
    const faults: string[] = [];
    const { spool } = await open(faults);
    remove();
    await spool.append(record('a'));
    expect(statSync(file).size).toBe(reservedBytes);
    remove();
    await spool.append(record('b'));
    expect((await open()).left).toEqual(['a', 'b', 0]);
    expect(faults).toHaveLength(2);
    await spool.clear();
    expect((await open()).left).toEqual([0]);
  });

  test('exists after its close, even if it was deleted after the last settlement', async () => {
    const spool = createSettlementSpool(file, () => {});
    await spool.open();
    await spool.append(record('a'));
    rmSync(file);
    await spool.close();
    expect((await open()).left).toEqual(['a', 0]);
  });

  test('rejects its close when its settlements are in no file that the next process would find', async () => {
    const spool = createSettlementSpool(file, () => {});
    await spool.open();
    await spool.append(record('a'));
    rmSync(file);
    mkdirSync(file);
    await expect(spool.close()).rejects.toThrow('EISDIR');
  });

  test('keeps the settlements of a file that took its place until the next start', async () => {
    const { spool } = await open();
    await spool.append(record('a'));
    rmSync(file);
    writeFileSync(file, writeSpoolLine(record('x')));
    await spool.append(record('b'));
    expect((await open()).left).toEqual(['x', 'a', 'b', 0]);
    await spool.clear();
    expect((await open()).left).toEqual(['x', 0]);
  });

  test.each([
    ['whose checksum is wrong', writeSpoolLine(record('x')).replace('"chargeNanos":5', '"chargeNanos":6')],
    ['that are not JSON', 'AAAAAA {"\n'],
  ])('skips lines %s, and keeps those around them', async (_name, line) => {
    writeFileSync(file, writeSpoolLine(record('a')) + line + writeSpoolLine(record('b')));
    expect((await open()).left).toEqual(['a', 'b', 1]);
  });

  const { budgets: _budgets, tag: _tag, ...begun } = beginningOf(openedRecord);
  test.each([
    ['lacks a field', intact([1, { ...record('x'), status: undefined }])],
    ['has a negative charge', intact([1, { ...record('x'), chargeNanos: -1 }])],
    ['does not say how it was begun', intact([1, { ...record('x'), begun: undefined }])],
    ['says in part how it was begun', intact([1, { ...record('x'), begun }])],
    ['has no settlement', intact([1, 5])],
    ['names another form', intact([2, record('x')])],
    [
      'has a claim in the form without one',
      intact([1, { ...record('x'), claim: { name: 'n', isFreed: true } }]),
    ],
    ['has a part of a claim', intact([2, { ...record('x'), claim: { name: 'n' } }])],
    ['names no form, as before there was one', intact(record('x'))],
    ['is of a single value', intact(1)],
  ])('refuses to open with an intact line that %s, and keeps it', async (_name, line) => {
    const text = writeSpoolLine(record('a')) + line;
    writeFileSync(file, text);
    await expect(open()).rejects.toThrow(
      `the spool of settlements ${file} has one that this version can not read: start the version that wrote it once`,
    );
    expect(readFileSync(file, 'utf8').startsWith(text)).toBe(true);
  });

  test('grows beyond its reserved space, and shrinks back when it is cleared', async () => {
    const { spool } = await open();
    const attempts = Array.from({ length: 1_000 }, () => ({ ...plainAttempt, model: 'm'.repeat(50) }));
    await Promise.all(
      Array.from({ length: 60 }, (_, number) => spool.append({ ...record(String(number)), attempts })),
    );
    expect(statSync(file).size).toBeGreaterThan(reservedBytes);
    expect((await open()).left).toHaveLength(61);
    await spool.clear();
    expect(statSync(file).size).toBe(reservedBytes);
    expect((await open()).left).toEqual([0]);
  });

  test('rejects its opening when its file exists and can not be read, since money lies in it', async () => {
    mkdirSync(file);
    await expect(createSettlementSpool(file, () => {}).open()).rejects.toThrow(
      /EISDIR.*textgate\.db-settlements/,
    );
  });

  test('reads an older file without zeros to its end', async () => {
    writeFileSync(file, '');
    appendFileSync(file, writeSpoolLine(record('a')));
    expect((await open()).left).toEqual(['a', 0]);
  });
});
