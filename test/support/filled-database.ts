import { DatabaseSync } from 'node:sqlite';
import { hashKey } from '../../src/shared/digest.ts';

/** The size of a database, and the balance of its keys. */
interface Filling {
  readonly keys: number;
  /** Number of records, each settled and charged. */
  readonly records: number;
  readonly models?: readonly string[];
  /** The time of the first record, in milliseconds since 1970; one follows every millisecond. */
  readonly startMs?: number;
}

/** The charge of every record, in nano-USD: 10 input and 10 output tokens at 1 and 2 USD per million. */
const chargeNanos = 30_000;

/** The remaining balance of every key, in nano-USD. */
const balanceNanos = 1_000_000_000_000;

/**
 * Fills a database that an engine has created: keys with a balance, records with random ids as in production, and a
 * balanced ledger. There are no query planner statistics, as in production.
 */
export function fillDatabase(
  file: string,
  { keys, records, models = ['small'], startMs = 1_700_000_000_000 }: Filling,
): void {
  const database = new DatabaseSync(file, { timeout: 10_000 });
  database.exec('PRAGMA foreign_keys = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; BEGIN');
  const key = database.prepare('INSERT INTO api_keys (id, hash, name, created_at) VALUES (?, ?, ?, ?)');
  const account = database.prepare(
    'INSERT INTO accounts (key_id, balance, spent, postings) VALUES (?, ?, ?, ?)',
  );
  const credit = database.prepare(
    `INSERT INTO ledger_rows (key_id, number, created_at, kind, delta, reference, posting) VALUES (?, 1, ?, 'credit', ?, 'first', ?)`,
  );
  // Numbered by the database, behind the accounts and kinds that a gateway has made already.
  const accountNumbers = Array.from({ length: keys }, (_, number) => {
    const charges = Math.floor(records / keys) + (number < records % keys ? 1 : 0);
    const spent = chargeNanos * charges;
    key.run(keyIdOf(number), hashKey(secretOf(number)), `key ${number}`, startMs + number);
    credit.run(keyIdOf(number), startMs, balanceNanos + spent, `opening-${number}`);
    return account.run(keyIdOf(number), balanceNanos, spent, charges + 1).lastInsertRowid;
  });
  const kind = database.prepare(
    `INSERT INTO record_kinds (protocol, mode, model, upstream, attempt_model, tag, group_name, outcome, status,
       usage_source, price_input, price_cached_input, price_cache_write, price_output, price_request)
     VALUES ('chat', 'stream', ?, 'local', 'tiny', '', '', 'completed', 200, 'upstream', 1000000000, 1000000000, 0,
       2000000000, 0)`,
  );
  const kindNumbers = models.map((model) => kind.run(model).lastInsertRowid);
  const record = database.prepare(
    `INSERT INTO record_rows (created_at, tail, account, kind, charge, charge_number, hold, input_tokens, output_tokens, queued_ms,
       settled_ms, first_byte_ms, total_ms, attempt_started_ms, attempt_ms)
     VALUES (?, randomblob(10), ?, ?, ?, ?, ?, 10, 10, 1, 0, 120, 900, 1, 899)`,
  );
  for (let number = 0; number < records; number++) {
    const posting = 2 + Math.floor(number / keys);
    const accountNumber = accountNumbers[number % keys] ?? 0;
    const kindNumber = kindNumbers[number % models.length] ?? 0;
    record.run(startMs + number, accountNumber, kindNumber, chargeNanos, posting, chargeNanos);
  }
  // Flushed before any measurement: the gateway's first commit would wait for all of it.
  database.exec('COMMIT; PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
}

export function keyIdOf(number: number): string {
  return `key_${String(number).padStart(12, '0')}`;
}

/** The secret of a key. */
export function secretOf(number: number): string {
  return `sk-tg-${String(number).padStart(12, '0')}-${'x'.repeat(43)}`;
}
