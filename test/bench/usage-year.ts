import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { Client } from 'pg';
import { systemClock } from '../../src/composition/clock.ts';
import { usageDimensions, usagePeriods } from '../../src/domain/ports/usage.ts';
import type { UsageDimension, UsageGroup, UsageQuery } from '../../src/domain/ports/usage.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { createUsageRollups } from '../../src/storage/usage/usage-rollups.ts';
import { createUsage } from '../../src/storage/usage/usage-store.ts';
import { seededNumbers } from '../support/random-numbers.ts';
import { countOption, oneOf, onOff, readScript, seedOption } from '../support/script-options.ts';
import { openThreadedEngine } from '../support/test-engine.ts';
import { createDatabase } from '../support/test-postgres.ts';

/**
 * Measures usage of a random year: how long a page of each grouping takes, and what the sums take of the disk. With
 * `--check` it also adds every grouping up from the records themselves. `npm run bench usage -- --engine postgres --check`
 */
const options = readScript({
  name: 'bench usage',
  options: {
    engine: oneOf('the storage engine', ['sqlite', 'postgres']),
    records: countOption('records in the year', 1_000_000),
    samples: countOption('how often each grouping is read', 40),
    check: onOff('adds each grouping up from the records, too'),
    seed: seedOption(18),
  },
});
const { records, samples, seed } = options;
const random = seededNumbers(seed);

const [hourMs, dayMs] = [3_600_000, 86_400_000];
const startMs = Date.UTC(2026, 0);
const endMs = Date.UTC(2027, 0);
/** The year is not over: its last days are not rolled up. */
const nowMs = endMs - 10 * hourMs;

const print = (text: string): void => void process.stdout.write(`${text}\n`);

const names = {
  key: Array.from({ length: 1_000 }, (_, at) => `key_${String(at).padStart(12, '0')}`),
  group: ['', 'research', 'sales', 'support'],
  model: Array.from({ length: 10 }, (_, at) => `vendor/model-${at}`),
  upstream: ['own', 'bought', 'spare'],
  outcome: ['client_closed', 'completed', 'incomplete', 'refused', 'upstream_failed'],
  tag: ['', 'batch', 'search', 'summary'],
};

/** A record as numbers: the hour of the year, and the places of its names. */
interface BenchRecord {
  readonly at: number;
  readonly places: Readonly<Record<UsageDimension, number>>;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly charge: number;
}

/** Few keys with many requests, and many with few. */
const weights = names.key.map((_, at) => 1 / (at + 3));
const total = weights.reduce((sum, weight) => sum + weight, 0);
const bounds = weights.map(
  (
    (sum) => (weight: number) =>
      (sum += weight / total)
  )(0),
);
const habits = names.key.map(() => ({
  models: Array.from({ length: 1 + Math.floor(random() * 4) }, () =>
    Math.floor(random() * names.model.length),
  ),
  tags: random() < 0.5 ? [0] : [0, 1 + Math.floor(random() * 3)],
}));

function pickKey(): number {
  const wanted = random();
  let [low, high] = [0, bounds.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((bounds[middle] ?? 1) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

function makeRecord(): BenchRecord {
  const key = pickKey();
  const { models = [], tags = [] } = habits[key] ?? {};
  const model = models[Math.floor(random() * models.length)] ?? 0;
  const outcome = random() < 0.94 ? 1 : Math.floor(random() * names.outcome.length);
  const [inputTokens, outputTokens] = [Math.floor(random() * 4_000), Math.floor(random() * 900)];
  return {
    at: startMs + Math.floor((nowMs - startMs) * random()),
    places: {
      key,
      group: key % names.group.length,
      model,
      upstream: model % 3 === 0 && random() < 0.1 ? 2 : model % 2,
      outcome,
      tag: tags[Math.floor(random() * tags.length)] ?? 0,
    },
    inputTokens,
    outputTokens,
    charge: outcome === 1 ? inputTokens * 150 + outputTokens * 600 : 0,
  };
}

/** What records have in common, by their names: the number of each kind. */
const kinds = new Map<string, number>();

function columnsOf({ at, places, inputTokens, outputTokens, charge }: BenchRecord, number: number) {
  const name = (dimension: UsageDimension): string => names[dimension][places[dimension]] ?? '';
  const common = JSON.stringify(
    ['model', 'upstream', 'outcome', 'tag', 'group'].map((each) => name(each as UsageDimension)),
  );
  const kind = kinds.get(common) ?? kinds.size + 1;
  kinds.set(common, kind);
  return [at, number.toString(16).padStart(20, '0'), places.key + 1, kind, inputTokens, outputTokens, charge];
}

/** The kinds of all records, as rows. */
function kindRows(): readonly (readonly (string | number)[])[] {
  return Array.from(kinds, ([common, number]) => [number, ...(JSON.parse(common) as string[])]);
}

const intoKinds = `INSERT INTO record_kinds (number, model, upstream, outcome, tag, group_name, protocol, mode, attempt_model,
  status, usage_source, price_input, price_cached_input, price_cache_write, price_output, price_request)`;
const restOfKinds = `'chat', 'stream', '', 200, 'upstream', 0, 0, 0, 0, 0`;
const into = `INSERT INTO record_rows (created_at, tail, account, kind, input_tokens, output_tokens, charge, queued_ms, settled_ms)`;
const spent = `UPDATE accounts SET spent = (SELECT coalesce(sum(charge), 0) FROM record_rows WHERE account = accounts.number)`;

/** A database to measure. */
interface Measured {
  readonly engine: Engine;
  fill(all: readonly BenchRecord[]): Promise<void>;
  /** The bytes of the tables of usage, and of the records. */
  bytes(): Promise<{ readonly hours: number; readonly rollups: number; readonly records: number }>;
  close(): Promise<void>;
}

async function openSqlite(): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-usage-'));
  const file = join(folder, 'textgate.db');
  const engine = openThreadedEngine(file);
  await engine.ready;
  const size = (database: DatabaseSync, like: string): number =>
    Number(
      database.prepare('SELECT sum(pgsize) AS bytes FROM dbstat WHERE name LIKE ?').get(like)?.['bytes'] ?? 0,
    );
  return {
    engine,
    async fill(all) {
      const database = new DatabaseSync(file, { timeout: 10_000 });
      database.exec(
        'PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; BEGIN',
      );
      const key = database.prepare('INSERT INTO api_keys (id, hash, name, created_at) VALUES (?, ?, ?, 1)');
      const account = database.prepare('INSERT INTO accounts (number, key_id) VALUES (?, ?)');
      for (const [at, id] of names.key.entries()) {
        key.run(id, id, id);
        account.run(at + 1, id);
      }
      const rows = all.map(columnsOf);
      const kind = database.prepare(`${intoKinds} VALUES (?, ?, ?, ?, ?, ?, ${restOfKinds})`);
      for (const row of kindRows()) kind.run(...row);
      const record = database.prepare(`${into} VALUES (?, unhex(?), ?, ?, ?, ?, ?, 1, 1)`);
      for (const row of rows) record.run(...row);
      database.exec(`${spent}; COMMIT`);
      database.close();
    },
    async bytes() {
      const database = new DatabaseSync(file, { readOnly: true });
      const found = {
        hours: size(database, 'usage_hours'),
        rollups: size(database, 'usage_rollups'),
        records: size(database, 'record%'),
      };
      database.close();
      return found;
    },
    async close() {
      await engine.close();
      rmSync(folder, { recursive: true });
    },
  };
}

async function openPostgres(): Promise<Measured> {
  const database = await createDatabase();
  const engine = createPostgresEngine({ url: database.url, clock: systemClock });
  await engine.ready;
  const client = new Client({ connectionString: database.url });
  await client.connect();
  return {
    engine,
    async fill(all) {
      await client.query(
        `INSERT INTO api_keys (id, hash, name, created_at) SELECT id, id, id, 1 FROM unnest($1::text[]) AS id`,
        [names.key],
      );
      await client.query(
        'INSERT INTO accounts (number, key_id) SELECT number, id FROM unnest($1::text[]) WITH ORDINALITY AS key (id, number)',
        [names.key],
      );
      const rows = all.map(columnsOf);
      const lists = (some: readonly (readonly unknown[])[], width: number) =>
        Array.from({ length: width }, (_, column) => some.map((row) => row[column]));
      await client.query(
        `${intoKinds} SELECT *, ${restOfKinds} FROM unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])`,
        lists(kindRows(), 6),
      );
      for (let at = 0; at < rows.length; at += 5_000)
        await client.query(
          `${into} SELECT at, unhex(tail), account, kind, input, output, charge, 1, 1 FROM unnest($1::bigint[], $2::text[],
             $3::int[], $4::int[], $5::bigint[], $6::bigint[], $7::bigint[])
             AS row (at, tail, account, kind, input, output, charge)`,
          lists(rows.slice(at, at + 5_000), 7),
        );
      await client.query(spent);
    },
    async bytes() {
      await client.query('VACUUM ANALYZE');
      const { rows } = await client.query<Record<string, string>>(
        `SELECT pg_total_relation_size('usage_hours') AS hours, pg_total_relation_size('usage_rollups') AS rollups,
           (SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('record_rows')) AS records`,
      );
      const [{ hours = 0, rollups = 0, records: recorded = 0 } = {}] = rows;
      return { hours: Number(hours), rollups: Number(rollups), records: Number(recorded) };
    },
    async close() {
      await client.end();
      await engine.close();
      await database.drop();
    },
  };
}

/** Every grouping: each set of dimensions, with each period and without one. */
const groupings: readonly (readonly UsageGroup[])[] = [null, ...usagePeriods].flatMap((period) =>
  Array.from({ length: 1 << usageDimensions.length }, (_none, set) => [
    ...(period === null ? [] : [period]),
    ...usageDimensions.filter((_, bit) => set & (1 << bit)),
  ]),
);

const year = { fromMs: startMs, toMs: endMs, where: {}, limit: 1_000 };

function percentile(times: readonly number[], share: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

const shown = (times: readonly number[]): string =>
  [0.5, 0.99].map((share) => percentile(times, share).toFixed(1).padStart(7)).join('');

/** Times pages of a query: as many as wanted, from its first page on, and again from there. */
async function timePages(engine: Engine, query: () => Omit<UsageQuery, 'after'>): Promise<readonly number[]> {
  const usage = createUsage(engine);
  const times: number[] = [];
  let asked = query();
  let after: string | null = null;
  await usage.usage({ ...asked, after });
  while (times.length < samples) {
    const start = performance.now();
    const page = await usage.usage({ ...asked, after });
    times.push(performance.now() - start);
    // The pages of a year may be many: some are passed over, so that the later ones are measured, too.
    after = page?.next ?? null;
    if (after === null) asked = query();
  }
  return times;
}

/** A range of whole hours in the year, of about a third of it. */
function someMonths() {
  const fromMs = startMs + Math.floor(random() * 200 * 24) * hourMs;
  return { ...year, fromMs, toMs: fromMs + Math.floor((60 + random() * 90) * 24) * hourMs };
}

/** Adds every grouping up from the records, and compares it with all pages. */
async function check(engine: Engine, all: readonly BenchRecord[]): Promise<void> {
  const usage = createUsage(engine);
  const ranks = Object.fromEntries(
    usageDimensions.map((one) => {
      const sorted = names[one].toSorted();
      return [one, new Map(sorted.map((name, at) => [name, at]))];
    }),
  );
  const monthOf = (at: number): number => Date.UTC(2026, new Date(at).getUTCMonth());
  for (const by of groupings) {
    const dimensions = usageDimensions.filter((one) => by.includes(one));
    const sums = new Map<number, { requests: number; input: number; output: number; charge: number }>();
    for (const { at, places, inputTokens, outputTokens, charge } of all) {
      const start = by.includes('hour')
        ? at - (at % hourMs)
        : by.includes('day')
          ? at - (at % dayMs)
          : by.includes('month')
            ? monthOf(at)
            : startMs;
      let name = (start - startMs) / hourMs;
      for (const one of dimensions) name = name * names[one].length + places[one];
      let sum = sums.get(name);
      if (sum === undefined) sums.set(name, (sum = { requests: 0, input: 0, output: 0, charge: 0 }));
      sum.requests++;
      sum.input += inputTokens;
      sum.output += outputTokens;
      sum.charge += charge;
    }
    let [groups, before] = [0, ''];
    for (let after: string | null = null; ;) {
      const page = await usage.usage({ ...year, by, after });
      for (const row of page?.rows ?? []) {
        const found = {
          key: row.keyId,
          group: row.group,
          model: row.model,
          upstream: row.upstream,
          outcome: row.outcome,
          tag: row.tag,
        };
        let name = ((row.startMs ?? startMs) - startMs) / hourMs;
        let order = String(name).padStart(6, '0');
        for (const one of dimensions) {
          name = name * names[one].length + names[one].indexOf(found[one] ?? '');
          order += ` ${String(ranks[one]?.get(found[one] ?? '')).padStart(4, '0')}`;
        }
        const sum = sums.get(name);
        const isEqual =
          sum !== undefined &&
          sum.requests === row.requests &&
          sum.input === row.inputTokens &&
          sum.output === row.outputTokens &&
          BigInt(sum.charge) === row.chargeNanos;
        if (!isEqual || order <= before)
          throw new Error(`by ${by.join(',')}: ${String(name)} is ${JSON.stringify(sum)}, or out of order`);
        before = order;
        groups++;
      }
      after = page?.next ?? null;
      if (after === null) break;
      // Pages share the thread with nothing else here.
      await setImmediate();
    }
    if (groups !== sums.size) throw new Error(`by ${by.join(',')}: ${groups} groups instead of ${sums.size}`);
  }
  print(`all ${groupings.length} groupings of the year are the sums of its records, in their order`);
}

const measured = await (options.engine === 'postgres' ? openPostgres() : openSqlite());
try {
  const { engine } = measured;
  print(`${options.engine}, seed ${seed}, ${records} records of ${names.key.length} keys`);
  const all = Array.from({ length: records }, makeRecord).toSorted((a, b) => a.at - b.at);
  let start = performance.now();
  await measured.fill(all);
  print(`filled in ${((performance.now() - start) / 1_000).toFixed(1)} s`);
  start = performance.now();
  const steps: number[] = [];
  let last = performance.now();
  const periods = await createUsageRollups(engine).rollUp(nowMs, async () => {
    steps.push(performance.now() - last);
    await setImmediate();
    last = performance.now();
  });
  const tookMs = performance.now() - start;
  print(`rolled ${periods} days and months up in ${(tookMs / 1_000).toFixed(1)} s, ${steps.length} steps;`);
  print(`  steps take${shown(steps)} ms (p50, p99), at most ${Math.max(...steps).toFixed(1)} ms`);
  const bytes = await measured.bytes();
  const each = (amount: number): string => (amount / records).toFixed(0);
  print(
    `bytes a request: hours ${each(bytes.hours)}, rollups ${each(bytes.rollups)}, records ${each(bytes.records)}`,
  );
  start = performance.now();
  const { faults } = await verifyLedger({ ...createLedgerAudit(engine), settled: async function* () {} });
  print(`audit of all accounts: ${(performance.now() - start).toFixed(1)} ms`);
  const usageFaults = faults.filter((fault) => fault.includes('usage'));
  if (usageFaults.length > 0) throw new Error(usageFaults.join('\n'));
  if (options.check) await check(engine, all);
  print(`a page of at most 1,000 rows, in ms        p50    p99`);
  let worst = 0;
  const report = async (name: string, query: () => Omit<UsageQuery, 'after'>): Promise<void> => {
    const times = await timePages(engine, query);
    worst = Math.max(worst, percentile(times, 0.99));
    print(`  ${name.padEnd(36)}${shown(times)}`);
  };
  for (const by of groupings) await report(by.join(',') || '(none)', () => ({ ...year, by }));
  const key = (): string => names.key[Math.floor(random() ** 3 * 1_000)] ?? '';
  for (const by of [['day'], ['hour'], ['model'], ['day', 'model', 'tag'], ['outcome', 'tag']] as const)
    await report(`${by.join(',')} of a key`, () => ({ ...year, by, where: { keyId: key() } }));
  for (const by of [
    [],
    ['key'],
    ['day', 'model'],
    ['key', 'tag'],
    ['hour'],
    ['month', 'key', 'model'],
  ] as const)
    await report(`${by.join(',') || '(none)'} of some months`, () => ({ ...someMonths(), by }));
  await report('key of a model', () => ({ ...year, by: ['key'], where: { model: 'vendor/model-3' } }));
  await report('key of a tag', () => ({ ...year, by: ['key'], where: { tag: 'search' } }));
  await report('day of an outcome', () => ({ ...year, by: ['day'], where: { outcome: 'upstream_failed' } }));
  print(`the slowest p99 is ${worst.toFixed(1)} ms`);
} finally {
  await measured.close();
}
