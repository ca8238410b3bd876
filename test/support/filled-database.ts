import { randomBytes } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { hashKey } from '../../src/shared/digest.ts';

/** The size of a database, and the balance of its keys. */
interface Filling {
  readonly keys: number;
  /** Number of records, each settled and with a ledger entry. */
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
    `INSERT INTO ledger (key_id, number, created_at, kind, delta, reference, posting) VALUES (?, 1, ?, 'credit', ?, 'first', ?)`,
  );
  for (let number = 0; number < keys; number++) {
    const charges = Math.floor(records / keys) + (number < records % keys ? 1 : 0);
    const spent = chargeNanos * charges;
    key.run(keyIdOf(number), hashKey(secretOf(number)), `key ${number}`, startMs + number);
    account.run(keyIdOf(number), balanceNanos, spent, charges + 1);
    credit.run(keyIdOf(number), startMs, balanceNanos + spent, `opening-${number}`);
  }
  const record = database.prepare(
    `INSERT INTO records (request_id, key_id, created_at, protocol, mode, model, upstream, queued_ms, outcome, status,
       input_tokens, cached_input_tokens, output_tokens, reasoning_tokens, usage_source, first_byte_ms, total_ms,
       price_input, price_cached_input, price_output, hold, charge, settlement, attempts)
     VALUES (?, ?, ?, 'chat', 'stream', ?, 'local', 1, 'completed', 200, 10, 0, 10, 0, 'upstream', 120, 900,
       1000000000, 1000000000, 2000000000, ?, ?, ?, ?)`,
  );
  const posting = database.prepare(
    `INSERT INTO ledger (key_id, number, created_at, kind, delta, request_id, posting) VALUES (?, ?, ?, 'charge', ?, ?, ?)`,
  );
  const attempts = JSON.stringify([
    { upstream: 'local', model: 'tiny', result: 'ok', durationMs: 900, usage: null },
  ]);
  for (let number = 0; number < records; number++) {
    const requestId = `req_${randomBytes(16).toString('hex')}`;
    const settlement = randomBytes(16).toString('hex');
    const keyId = keyIdOf(number % keys);
    const atMs = startMs + number;
    const model = models[number % models.length] ?? '';
    record.run(requestId, keyId, atMs, model, chargeNanos, chargeNanos, settlement, attempts);
    posting.run(keyId, 2 + Math.floor(number / keys), atMs, -chargeNanos, requestId, settlement);
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
