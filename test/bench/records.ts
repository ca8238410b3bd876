import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import type { RecordFilter } from '../../src/domain/money/consumption.ts';
import type { UsageQuery } from '../../src/domain/ports/usage.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createRecordPages } from '../../src/storage/records/record-pages.ts';
import { createRetention } from '../../src/storage/retention.ts';
import { createUsageRollups } from '../../src/storage/usage/usage-rollups.ts';
import { createUsage } from '../../src/storage/usage/usage-store.ts';
import { countOption, readScript } from '../support/script-options.ts';
import { openThreadedEngine } from '../support/test-engine.ts';

/**
 * Measures how lists, searches, usage and export change with the number of records, on SQLite: a year of requests of a thousand
 * keys, which come evenly. `npm run bench records -- --records 3000`
 */
const { records, samples } = readScript({
  name: 'bench records',
  options: {
    records: countOption(
      'records of the largest database, in thousands; the others have a third and a thirtieth',
      30_000,
    ),
    samples: countOption('how often each is read', 15),
  },
});

const keys = 1_000;
const dayMs = 86_400_000;
const startMs = Date.UTC(2026, 0);
const yearMs = 365 * dayMs;
const exported = 50_000;

/** Models with the share of requests that are for them; the last one is of the first week alone. */
const models = [
  { name: 'usual', every: 1 },
  { name: 'seldom', every: 50 },
  { name: 'rare', every: 200_000 },
  { name: 'of January', every: 7 },
] as const;

/** The model of a request, by its number and time. */
const modelOf = `CASE WHEN number % 7 = 3 AND number < :count / 52 THEN 4 WHEN number % 200000 = 77777 THEN 3
  WHEN number % 50 = 9 THEN 2 ELSE 1 END`;

/** Fills a database by statements of SQL, without the trigger that counts each record: usage is added up at the end. */
function fill(file: string, count: number): void {
  const database = new DatabaseSync(file, { timeout: 10_000 });
  const trigger = database.prepare(`SELECT sql FROM sqlite_schema WHERE name = 'usage_of_new_record'`).get();
  database.exec(`PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; BEGIN;
    DROP TRIGGER usage_of_new_record;
    WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < ${keys})
      INSERT INTO accounts (number, key_id) SELECT number, printf('key_%06d', number) FROM numbers`);
  const kind = database.prepare(
    `INSERT INTO record_kinds VALUES (?, 'chat', 'stream', ?, 'u', 'm', '', '', 'completed', 200, 'upstream', 1, 1, 1, 1, 0)`,
  );
  for (const [at, { name }] of models.entries()) kind.run(at + 1, name);
  database
    .prepare(
      `WITH RECURSIVE numbers (number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM numbers WHERE number < :count - 1)
       INSERT INTO record_rows (created_at, tail, account, kind, charge, charge_number, hold, input_tokens, output_tokens, queued_ms,
         settled_ms, first_byte_ms, total_ms, attempt_started_ms, attempt_ms)
       SELECT ${startMs} + number * ${yearMs} / :count, randomblob(10), 1 + number * 7919 % ${keys}, ${modelOf}, 304800,
         1 + number / ${keys}, 400000, 812, 305, 1, 2220, 412, 2219, 3, 2214 FROM numbers`,
    )
    .run({ count });
  database.exec(`INSERT INTO usage_hours
    SELECT created_at / 3600000 * 3600000, printf('key_%06d', account), '', model, 'u', 'completed', '', count(*),
      sum(input_tokens), 0, 0, sum(output_tokens), 0, sum(charge)
    FROM record_rows JOIN record_kinds ON record_kinds.number = kind GROUP BY 1, 2, 4;
    ${String(trigger?.['sql'])}; COMMIT; PRAGMA wal_checkpoint(TRUNCATE)`);
  database.close();
}

/** How long something takes, in milliseconds: the middle of some samples. */
async function time(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let sample = 0; sample < samples; sample++) {
    const beganMs = performance.now();
    await work();
    times.push(performance.now() - beganMs);
  }
  return times.toSorted((one, other) => one - other)[samples >> 1] ?? Number.NaN;
}

/** What is measured, by its name: milliseconds, or records a second. */
async function measure(engine: Engine): Promise<ReadonlyMap<string, number>> {
  const pages = createRecordPages(engine);
  const [usage, retention] = [createUsage(engine), createRetention(engine)];
  const found = new Map<string, number>();
  const list = async (name: string, filter: RecordFilter): Promise<void> => {
    found.set(`page of 50: ${name}, ms`, await time(() => pages.listRecords(filter, 50, null)));
  };
  const [keyId, middle] = ['key_000500', startMs + yearMs / 2];
  await list('the newest', {});
  await list('of a key', { keyId });
  await list('of a key, before a time', { keyId, to: middle });
  await list('of a model with 1 request in 50', { model: 'seldom' });
  await list('of a model with 1 request in 200,000', { model: 'rare' });
  await list('of a model that was used in January alone', { model: 'of January' });
  await list('of a model and a key', { keyId, model: 'seldom' });
  await list('of a model that was never used', { model: 'none' });
  const [newest] = (await pages.listRecords({}, 1, null))?.records ?? [];
  found.set('one record by its id, ms', await time(() => pages.findRecord(newest?.requestId ?? '', null)));
  const month = { fromMs: Date.UTC(2026, 10), toMs: Date.UTC(2026, 11), limit: 1_000, after: null };
  const ask = (query: Partial<UsageQuery>) => () => usage.usage({ by: [], where: {}, ...month, ...query });
  found.set('usage of a month by day, ms', await time(ask({ by: ['day'] })));
  found.set('usage of a month by key, ms', await time(ask({ by: ['key'] })));
  found.set(
    'usage of a year by month and model, ms',
    await time(ask({ by: ['month', 'model'], fromMs: startMs, toMs: startMs + yearMs })),
  );
  const beganMs = performance.now();
  let last = null;
  for (let read = 0; read < exported; read += 500)
    last = (await retention.listOldest(Number.MAX_SAFE_INTEGER, last, 500)).at(-1) ?? null;
  found.set('export, records a second', (exported / (performance.now() - beganMs)) * 1_000);
  return found;
}

const counts = [records / 30, records / 3, records].map((thousands) => Math.round(thousands) * 1_000);
const columns: ReadonlyMap<string, number>[] = [];
for (const count of counts) {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-records-'));
  try {
    const file = join(folder, 'textgate.db');
    const engine = openThreadedEngine(file);
    await engine.ready;
    fill(file, count);
    await createUsageRollups(engine).rollUp(startMs + yearMs, () => setImmediate());
    const found = await measure(engine);
    process.stdout.write(`${count} records were read\n`);
    columns.push(new Map([['bytes a record, with usage', statSync(file).size / count], ...found]));
    await engine.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
}
process.stdout.write(
  `| SQLite, one year of ${keys} keys | ${counts.map((count) => `${count / 1_000}k`).join(' | ')} |\n`,
);
process.stdout.write(`|---|${counts.map(() => '---:|').join('')}\n`);
for (const name of columns[0]?.keys() ?? []) {
  const values = columns.map((column) => (column.get(name) ?? Number.NaN).toPrecision(3));
  process.stdout.write(`| ${name} | ${values.join(' | ')} |\n`);
}
