import { DatabaseSync } from 'node:sqlite';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';

/**
 * The least that an exact ledger does, in a thread of its own: charges that arrive together are one transaction, which is
 * on the disk before it is answered with their number.
 */

type Charge = readonly [id: string, model: string, input: number, output: number];

const mostTogether = 64;
const { file, posts } = workerData as { readonly file: string; readonly posts: Int32Array };
const database = new DatabaseSync(file);
database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE charges (at INTEGER PRIMARY KEY, id TEXT, model TEXT, input INTEGER, output INTEGER, amount INTEGER) STRICT;
  CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER NOT NULL) STRICT;
  INSERT INTO accounts VALUES ('key', 0)`);
const insert = database.prepare(
  'INSERT INTO charges (id, model, input, output, amount) VALUES (?, ?, ?, ?, ?)',
);
const update = database.prepare("UPDATE accounts SET balance = balance - ? WHERE name = 'key'");

/** Charges whose messages are here already are in one transaction. */
function readCharges(port: MessagePort): Charge[] {
  const charges: Charge[] = [];
  while (charges.length < mostTogether) {
    const received = receiveMessageOnPort(port);
    if (received === undefined) break;
    charges.push(received.message as Charge);
  }
  return charges;
}

function commit(charges: readonly Charge[]): void {
  database.exec('BEGIN');
  for (const [id, model, input, output] of charges) {
    const amount = input * 3 + output * 15;
    insert.run(id, model, input, output, amount);
    update.run(amount);
  }
  database.exec('COMMIT');
}

const port = parentPort;
if (port === null) throw new Error('this file runs as a worker thread');
// It sleeps on the count of posts, as the gateway's threads do, and not in an event loop.
for (;;) {
  const seen = Atomics.load(posts, 0);
  const charges = readCharges(port);
  if (charges.length === 0) Atomics.wait(posts, 0, seen);
  else {
    commit(charges);
    port.postMessage(charges.length);
  }
}
