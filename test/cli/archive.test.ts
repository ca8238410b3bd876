import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { fillDatabase, keyIdOf } from '../support/filled-database.ts';
import { startUpstream } from '../support/scripted-upstream.ts';
import { serveHere } from '../support/serve-here.ts';
import { serveFolderBy } from '../support/served-folder.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { openTestEngine } from '../support/test-engine.ts';
import { runCommand } from '../support/run-command.ts';
import { startTextgate } from '../support/textgate-process.ts';

/** How long a test may take, in milliseconds: processes start one after another. */
const patienceMs = 120_000;

/** Records in the database, one for each millisecond: the first half is from before midnight. */
const records = 3_000;
const midnightMs = Date.UTC(2024, 0, 2);
const before = ['--before', '2024-01-02'];

/** What the summary says of that half, each of which was charged 30,000 nano-USD. */
const half = '1500 records with charges of 0.045 USD';

/** A gateway whose database has old records. */
async function serveOld() {
  const folder = makeTemporaryFolder();
  mkdirSync(join(folder, 'data'));
  const database = join(folder, 'data', 'textgate.db');
  const engine = openTestEngine(database);
  await engine.ready;
  await engine.close();
  fillDatabase(database, {
    keys: 5,
    records,
    models: ['a, "b"', 'ü'],
    startMs: midnightMs - records / 2,
  });
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const gateway = await serveFolderBy(serveHere, folder, upstream.url);
  return {
    gateway,
    database,
    file: join(folder, 'old'),
    run: (...args: readonly string[]) => runCommand(['records', ...args], folder, gateway.environment),
    start: (...args: readonly string[]) => startTextgate(['records', ...args], folder, gateway.environment),
    verify: () => runCommand(['ledger', 'verify'], folder, gateway.environment),
    /** The records that are in the database. */
    left: () => {
      const reader = new DatabaseSync(database, { readOnly: true });
      const ids = reader.prepare('SELECT request_id FROM records').all();
      reader.close();
      return ids.map((row) => String(row['request_id']));
    },
  };
}

const idsIn = (jsonLines: string): readonly string[] =>
  jsonLines
    .trimEnd()
    .split('\n')
    .map((line) => (JSON.parse(line) as { request_id: string }).request_id);

test(
  'textgate records archive moves old records to a file, once, and leaves a ledger that balances',
  async () => {
    const { gateway, file, run, verify, left } = await serveOld();
    const all = left();
    const printed = await run('archive', ...before);
    expect([printed.code, printed.stderr, left().length]).toEqual([0, '', records]);
    expect(idsIn(printed.stdout)).toHaveLength(records / 2);

    const moved = await run('archive', ...before, file);
    expect(moved).toMatchObject({ code: 0, stderr: '' });
    expect(moved.stdout).toContain(`has ${half}, all from before 2024-01-02T00:00:00.000Z`);
    expect(moved.stdout).toContain('1500 records removed from the database, 1505 postings folded');
    const archive = readFileSync(file, 'utf8');
    expect(archive.trimEnd()).toBe(printed.stdout.trimEnd());
    expect(new Set([...left(), ...idsIn(archive)])).toEqual(new Set(all));
    expect(left()).toHaveLength(records / 2);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(JSON.parse(archive.slice(0, archive.indexOf('\n')))).toMatchObject({
      key_id: keyIdOf(0),
      model: 'a, "b"',
      charge: '0.00003',
      attempts: [{ upstream: 'local', result: 'ok' }],
      unbooked: '0.00',
    });
    expect((await verify()).stdout).toContain('the ledger balances: 5 accounts, 1500 records');

    const again = await run('archive', ...before, file);
    expect(again.stdout).toContain(`was there already, with ${half}: nothing was written`);
    expect(again.stdout).toContain('0 records removed from the database, 0 postings folded');
    expect(readFileSync(file, 'utf8')).toBe(archive);

    const csv = await run('archive', ...before, '--csv', `${file}.csv`);
    expect(csv.stdout).toContain('has 0 records');
    const [gone = ''] = idsIn(archive);
    expect(await gateway.ask('GET', `/records/${gone}`)).toMatchObject({
      error: {
        code: 'request_not_found',
        message: expect.stringContaining(
          'Records of requests from before 2024-01-02T00:00:00.000Z were removed',
        ),
      },
    });
    expect(
      await gateway.ask('POST', `/keys/${keyIdOf(0)}/credits`, { amount: '1', reference: 'first' }),
    ).toMatchObject({
      error: { code: 'invalid_value' },
    });
  },
  patienceMs,
);

test(
  'an archive in CSV has all that is stored, and its records are removed like those in JSON lines',
  async () => {
    const { file, run, verify, left } = await serveOld();
    const moved = await run('archive', '--csv', ...before, file);
    expect(moved.stdout).toContain(half);
    const [header = '', first = '', ...lines] = readFileSync(file, 'utf8').trimEnd().split('\r\n');
    expect(header).toMatch(/^request_id,key_id,created_at,.*,unbooked,failure_json,attempts_json$/);
    expect(first).toContain(',"a, ""b""",local,completed,200,');
    expect(lines).toHaveLength(records / 2 - 1);
    expect(left()).toHaveLength(records / 2);
    expect((await verify()).code).toBe(0);
  },
  patienceMs,
);

test(
  'an archive that was killed while it wrote is written anew, and one that was killed while it removed goes on',
  async () => {
    const { gateway, file, run, start, verify, left } = await serveOld();
    // As a killed process leaves it.
    writeFileSync(`${file}.partial`, '{"request_id":"req_');
    const all = left();
    const first = start('archive', ...before, file);
    await eventually('some are removed', () => existsSync(file) && left().length < records);
    first.signal('SIGKILL');
    await first.finished;
    const archive = readFileSync(file, 'utf8');
    expect(idsIn(archive)).toHaveLength(records / 2);

    const second = await run('archive', ...before, file);
    expect(second.stdout).toContain(`was there already, with ${half}`);
    expect(readFileSync(file, 'utf8')).toBe(archive);
    expect([...left(), ...idsIn(archive)].toSorted()).toEqual(all.toSorted());
    expect((await verify()).stdout).toContain('the ledger balances');
    expect(await gateway.ask('GET', '/ledger')).toMatchObject({ faults: [] });
  },
  patienceMs,
);

test(
  'textgate records archive refuses what it can not do safely, and says what to do',
  async () => {
    const { database, file, run, left } = await serveOld();
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
    const refusals: readonly [readonly string[], RegExp][] = [
      [['archive', file], /give a day, or set records\.keep/],
      [
        ['archive', file, '--before', tomorrow],
        /when they are a day old: write \d{4}-\d\d-\d\d or an earlier day/,
      ],
      [['archive', file, '--before', 'yesterday'], /Invalid 'before'/],
      [['archive', `${database}-wal`, ...before], /belongs to the database/],
      [['archive', file, '--csv', '--json', ...before], /once: --csv or --json/],
      [['archive', join(file, 'none', 'x'), ...before], /nothing was removed/],
      [['archive', dirname(file), ...before], /exists, and is no regular file: choose another/],
      [['archive', '/dev/zero', ...before], /exists, and is no regular file: choose another/],
    ];
    for (const [args, message] of refusals) {
      const { code, stderr } = await run(...args);
      expect([code, stderr]).toEqual([1, expect.stringMatching(message)]);
    }
    writeFileSync(file, 'a,file,of,another,kind\n');
    expect((await run('archive', file, ...before)).stderr).toContain('is no record');
    expect([existsSync(`${file}.partial`), left().length]).toEqual([false, records]);
  },
  patienceMs,
);
