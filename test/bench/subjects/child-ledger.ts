import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';

/**
 * The least that an exact ledger does, in a thread of its own: charges that arrive together are one transaction, which is
 * on the disk before it is answered with their number. A charge is `[id, model, input tokens, output tokens]`.
 */

const mostWaiting = 64;
const database = new DatabaseSync(workerData as string);
database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE charges (at INTEGER PRIMARY KEY, id TEXT, model TEXT, input INTEGER, output INTEGER, amount INTEGER) STRICT;
  CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER NOT NULL) STRICT;
  INSERT INTO accounts VALUES ('key', 0)`);
const insert = database.prepare(
  'INSERT INTO charges (id, model, input, output, amount) VALUES (?, ?, ?, ?, ?)',
);
const update = database.prepare("UPDATE accounts SET balance = balance - ? WHERE name = 'key'");

let waiting: (readonly [string, string, number, number])[] = [];

parentPort?.on('message', (charge: readonly [string, string, number, number]) => {
  waiting.push(charge);
  // Charges whose messages are here already are read before the transaction begins.
  if (waiting.length === 1) setImmediate(commit);
  else if (waiting.length === mostWaiting) commit();
});

function commit(): void {
  if (waiting.length === 0) return;
  const charges = waiting;
  waiting = [];
  database.exec('BEGIN');
  for (const [id, model, input, output] of charges) {
    const amount = input * 3 + output * 15;
    insert.run(id, model, input, output, amount);
    update.run(amount);
  }
  database.exec('COMMIT');
  parentPort?.postMessage(charges.length);
}
