import { appendFileSync, readFileSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ConsumptionRecord } from '../../src/domain/money/consumption.ts';
import { createArchiveFolder } from '../../src/storage/archive-folder.ts';
import { openedRecord, settledRecord } from '../support/stored-rows.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const firstMs = Date.UTC(2027, 0, 1, 23, 59, 59, 998);

/** Records that follow each other by a millisecond: two of a day, and the others of the next one. */
function recordsOf(count: number): readonly ConsumptionRecord[] {
  const { hold: _hold, ...begun } = openedRecord;
  return Array.from({ length: count }, (_, number) => ({
    ...begun,
    ...settledRecord,
    price: openedRecord.price,
    upstream: 'ü',
    requestId: `req_${number}`,
    createdAtMs: firstMs + number,
    holdNanos: 0,
    unbookedNanos: 0,
    settledMs: 1,
  }));
}

const writeLine = ({ requestId, upstream }: ConsumptionRecord): string =>
  JSON.stringify({ request_id: requestId, upstream });

const lineOf = (number: number): string => `{"request_id":"req_${number}","upstream":"ü"}\n`;

test('an archive has a private file for each day, to which records are appended in their order', async () => {
  const folder = join(makeTemporaryFolder(), 'deep', 'archive');
  const archive = createArchiveFolder(folder, writeLine);
  const records = recordsOf(4);
  await archive.append(records.slice(0, 3));
  await archive.append(records.slice(3));
  expect(readdirSync(folder).toSorted()).toEqual(['records-2027-01-01.jsonl', 'records-2027-01-02.jsonl']);
  expect(readFileSync(join(folder, 'records-2027-01-01.jsonl'), 'utf8')).toBe(lineOf(0) + lineOf(1));
  expect(readFileSync(join(folder, 'records-2027-01-02.jsonl'), 'utf8')).toBe(lineOf(2) + lineOf(3));
  expect(statSync(join(folder, 'records-2027-01-01.jsonl')).mode & 0o777).toBe(0o600);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
});

test('what a dying process wrote before it removed the records is written once, wherever its file was cut', async () => {
  const folder = makeTemporaryFolder();
  const path = join(folder, 'records-2027-01-02.jsonl');
  const records = recordsOf(8).slice(2);
  const whole = records.map((_, at) => lineOf(at + 2)).join('');
  const { length } = Buffer.from(whole);
  for (let end = 0; end <= length; end++) {
    writeFileSync(path, whole);
    truncateSync(path, end);
    await createArchiveFolder(folder, writeLine).append(records);
    expect(readFileSync(path, 'utf8')).toBe(whole);
  }
});

test('finds the last lines of a file that is larger than what it reads at a time', async () => {
  const folder = makeTemporaryFolder();
  const path = join(folder, 'records-2027-01-02.jsonl');
  const long = 'x'.repeat(3_000);
  const old = Array.from({ length: 900 }, (_, number) => `{"request_id":"old_${number}","text":"${long}"}\n`);
  writeFileSync(path, old.join(''));
  appendFileSync(path, lineOf(2));
  await createArchiveFolder(folder, writeLine).append(recordsOf(4).slice(2));
  expect(readFileSync(path, 'utf8')).toBe(old.join('') + lineOf(2) + lineOf(3));
});

test('writes a record again that was settled after it was archived as lost, and no line that is there', async () => {
  const folder = makeTemporaryFolder();
  const path = join(folder, 'records-2027-01-02.jsonl');
  const line = ({ requestId, outcome, chargeNanos }: ConsumptionRecord): string =>
    JSON.stringify({ request_id: requestId, outcome, charge: chargeNanos });
  const archive = createArchiveFolder(folder, line);
  const late = recordsOf(4).slice(2);
  const lost = late.map((record) => ({ ...record, outcome: 'lost' as const, chargeNanos: 0 }));
  await archive.append(lost);
  await archive.append([lost[0], late[1]].filter((record) => record !== undefined));
  await archive.append(late.slice(1));
  const expected = [...lost, ...late.slice(1)].map(line);
  expect(readFileSync(path, 'utf8')).toBe(`${expected.join('\n')}\n`);
  expect(new Set(expected).size).toBe(3);
});

test.each([
  ['whole', lineOf(2)],
  ['unfinished', `${lineOf(2)}{"request_id":"req_`],
])(
  'what another process writes meanwhile behind an end that is %s is never destroyed',
  async (_end, before) => {
    const folder = makeTemporaryFolder();
    const path = join(folder, 'records-2027-01-02.jsonl');
    writeFileSync(path, before);
    let others = '\n{"request_id":"req_other"}\n';
    // Called once the end of the file has been read.
    const meddling = (record: ConsumptionRecord): string => {
      appendFileSync(path, others);
      others = '';
      return writeLine(record);
    };
    const records = recordsOf(5).slice(3);
    await expect(createArchiveFolder(folder, meddling).append(records)).rejects.toThrow(
      `${path} was changed by something else while it was written`,
    );
    expect(readFileSync(path, 'utf8').startsWith(`${before}\n{"request_id":"req_other"}\n`)).toBe(true);
    for (let repeat = 0; repeat < 2; repeat++) await createArchiveFolder(folder, meddling).append(records);
    expect(readFileSync(path, 'utf8')).toBe(
      `${before}\n{"request_id":"req_other"}\n${lineOf(3)}${lineOf(4)}`,
    );
  },
);
