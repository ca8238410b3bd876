import { keyEntry } from '../../domain/audit/audit-line.ts';
import type { Actor } from '../../domain/audit/audit-line.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import { verifyLedger } from '../../operations/verify-ledger.ts';
import type { Verification } from '../../operations/verify-ledger.ts';
import { addLines } from '../../storage/audit/audit-lines.ts';
import type { Engine } from '../../storage/engine.ts';
import { createLedgerAudit } from '../../storage/ledger/ledger-audit.ts';
import { copiedTables, checkTables, planTable, compareSums } from '../../storage/move/table-plan.ts';
import type { TablePlan } from '../../storage/move/table-plan.ts';
import { PostgresTarget } from '../../storage/move/postgres-target.ts';
import { SqliteSource, checkSource } from '../../storage/move/sqlite-source.ts';
import { markMoved } from '../../storage/sqlite/check-file.ts';
import { noSpool } from '../../config/schema/storage-schema.ts';
import { createLog } from '../../telemetry/log/logger.ts';
import { openStorage } from './storage-services.ts';
import type { StorageServices } from './storage-services.ts';

/** How many faults of a ledger an error lists. */
const listedFaults = 10;

/** What is moved, and where what happens is reported. */
export interface Move {
  /** The path of a SQLite database. */
  readonly file: string;
  /** The URL of an empty PostgreSQL database. */
  readonly url: string;
  readonly clock: Clock;
  /** Who moves it, for the audit of the target. */
  readonly by: Actor;
  /** Is called with each step, and often while rows are copied. */
  readonly onProgress: (text: string) => void;
  /** Takes the lines that a start of the gateway on the file would log. */
  readonly writeLog: (line: string) => void;
}

/** What was moved. */
export interface Moved {
  /** The target's URL without the password. */
  readonly target: string;
  /** The rows of every copied table. */
  readonly rows: ReadonlyMap<string, number>;
  /** What the verification of the copied ledger went through. */
  readonly ledger: Pick<Verification, 'accounts' | 'records'>;
}

/**
 * Copies the database of a gateway that does not run to PostgreSQL, verified, in one transaction there: all or nothing. The
 * file gets what a start of the gateway would do to it: the steps of its schema, the settlements in the spool, and the end of
 * open requests. Once it is copied, it is marked, so that no gateway is started on it by mistake.
 */
export async function moveDatabase(move: Move): Promise<Moved> {
  checkSource(move.file);
  const target = await PostgresTarget.open(move.url, move.clock);
  try {
    return await withSource(move, (source, engine) => copyAll(move, source, engine, target));
  } finally {
    await target.close();
  }
}

/** Opens the file as a start of the gateway does, with its lock, and settles and closes what an earlier process left. */
async function withSource<Result>(
  { file, clock, onProgress, writeLog }: Move,
  work: (source: SqliteSource, engine: Engine) => Promise<Result>,
): Promise<Result> {
  onProgress(`opening ${file}`);
  const log = createLog('warn', clock, { write: writeLog }, 'text');
  // The spool of a file is beside it, whatever the setting says.
  const settings = {
    url: `sqlite:${file}`,
    durability: 'full',
    spool: noSpool,
    allowMigrated: true,
  } as const;
  const storage = openStorage(settings, clock, log, noMetrics);
  try {
    await storage.recovered;
    await requireNothingOpen(file, storage);
    const source = new SqliteSource(file);
    try {
      return await work(source, storage.engine);
    } finally {
      source.close();
    }
  } finally {
    // The copy does not depend on it, and an error would hide the one that ended the work.
    await storage.close().catch((error: unknown) => log.fault('closing the database failed', error));
    await log.close();
  }
}

/** Nothing asks for metrics while the command runs. */
const noMetrics = { holdsExpired: () => {}, keyLookUpShed: () => {} };

async function requireNothingOpen(file: string, { engine, records }: StorageServices): Promise<void> {
  const [[row] = []] = await engine.read([{ sql: 'SELECT count(*) AS count FROM open_rows', values: [] }]);
  const open = Number(row?.['count']);
  if (open > 0 || records.waiting > 0)
    throw new Error(
      `${file} has ${open} open requests and ${records.waiting} settlements that could not be made: start a gateway on it, stop it, and run the command again`,
    );
}

/** Copies all tables, and commits once both sides are equal and both ledgers balance. */
async function copyAll(
  { file, clock, by, onProgress }: Move,
  source: SqliteSource,
  engine: Engine,
  target: PostgresTarget,
): Promise<Moved> {
  checkTables(source.tables());
  const plans: TablePlan[] = [];
  for (const table of copiedTables)
    plans.push(planTable(table, source.columnsOf(table), await target.columnsOf(table)));
  onProgress(`verifying the ledger of ${file}`);
  await requireBalance(engine, `the ledger of ${file} does not balance, so nothing was copied`);
  const rows = new Map<string, number>();
  for (const plan of plans) rows.set(plan.table, await copyTable(plan, source, target, onProgress));
  for (const plan of plans) {
    onProgress(`comparing ${plan.table}`);
    compareSums(plan, source.sums(plan), await target.sums(plan));
  }
  onProgress(`verifying the ledger of ${target.name}`);
  await target.analyze();
  const ledger = await requireBalance(target, 'the copied ledger does not balance, so nothing was kept');
  await target.read([addLines([keyEntry(by, 'database.move', null, [])], clock.now())]);
  await target.commit();
  await engine.run(markMoved(target.name, clock.now())).catch((error: unknown) => {
    throw new Error(
      `${target.name} has all rows, but ${file} could not be marked as copied: do not start a gateway on it`,
      { cause: error },
    );
  });
  return { target: target.name, rows, ledger };
}

/** Copies the rows of a table: while the server takes a page, the next one is read. Resolves with how many there were. */
async function copyTable(
  plan: TablePlan,
  source: SqliteSource,
  target: PostgresTarget,
  onProgress: Move['onProgress'],
): Promise<number> {
  const total = source.count(plan.table);
  let copied = 0;
  let taken = Promise.resolve();
  for (const page of source.pages(plan)) {
    await taken;
    onProgress(`copying ${plan.table}: ${copied} of ${total} rows`);
    taken = target.insert(plan, page);
    // It is awaited above or below, unless reading fails first.
    taken.catch(() => {});
    copied += page.rows;
  }
  await taken;
  return copied;
}

async function requireBalance(database: Pick<Engine, 'read'>, otherwise: string): Promise<Verification> {
  const found = await verifyLedger(createLedgerAudit(database));
  const { faults } = found;
  if (faults.length === 0) return found;
  const more = faults.length > listedFaults ? [`and ${faults.length - listedFaults} more`] : [];
  throw new Error([`${otherwise}:`, ...faults.slice(0, listedFaults), ...more].join('\n'));
}
