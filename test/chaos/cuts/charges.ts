import { DatabaseSync } from 'node:sqlite';
import { setTimeout as wait } from 'node:timers/promises';
import { digest } from '../../../src/shared/digest.ts';
import { parseUsd } from '../../../src/shared/money.ts';
import type { PostgresServer } from '../../support/postgres-server.ts';
import type { ServedProcess } from '../served-process.ts';
import { nameOf } from './ask.ts';
import type { Gateway } from './gateways.ts';

/** The pause between two looks whether something runs, in milliseconds. */
const lookMs = 100;

/** How many records a page has. */
const pageRecords = 100;

/** What was charged: for each question, and by records that no claim has ended with. */
export interface Charges {
  /** In nano-USD, by the numbers of questions. */
  readonly ofQuestions: ReadonlyMap<number, number>;
  /** The requests that were charged beside those. */
  readonly besides: readonly string[];
}

/** What each key has spent, in nano-USD, once nothing runs any more. */
export async function readSpent(gateways: readonly Gateway[]): Promise<ReadonlyMap<string, number>> {
  for (;;) {
    const running = await Promise.all(gateways.map(({ served }) => served.ask('GET', '/in-flight')));
    if (running.every((list) => (list as { data: unknown[] }).data.length === 0)) break;
    await wait(lookMs);
  }
  const keys = (await gateways[0]?.served.ask('GET', '/keys')) as
    | { data: { name: string; spent: string }[] }
    | undefined;
  return new Map(keys?.data.map(({ name, spent }) => [name, parseUsd(spent) ?? Number.NaN]));
}

/** Reads the records of all requests, and which of them ended the claim of each question. */
export async function readCharges(
  served: ServedProcess,
  database: PostgresServer | string,
  questions: readonly number[],
): Promise<Charges> {
  const nanos = await readRecords(served);
  const requests = new Map(
    (await readClaims(database)).map(({ name, request_id: request }) => [
      String(name).toLowerCase(),
      String(request),
    ]),
  );
  const ofQuestions = new Map<number, number>();
  for (const question of questions) {
    const request = requests.get(digest(nameOf(question)));
    if (request === undefined) continue;
    ofQuestions.set(question, nanos.get(request) ?? 0);
    nanos.delete(request);
  }
  const besides = [...nanos].filter(([, charged]) => charged !== 0);
  return { ofQuestions, besides: besides.map(([request]) => request) };
}

/** What each request was charged, in nano-USD. */
async function readRecords(served: ServedProcess): Promise<Map<string, number>> {
  const nanos = new Map<string, number>();
  let before: string | null = null;
  do {
    const page = (await served.ask(
      'GET',
      `/records?limit=${pageRecords}${before === null ? '' : `&before=${before}`}`,
    )) as { data: { request_id: string; charge: string }[]; next: string | null };
    for (const { request_id: request, charge } of page.data)
      nanos.set(request, parseUsd(charge) ?? Number.NaN);
    before = page.next;
  } while (before !== null);
  return nanos;
}

/** The claims that have ended, on a server or in a file. */
async function readClaims(database: PostgresServer | string): Promise<readonly Record<string, unknown>[]> {
  const ended = 'request_id FROM claims WHERE ended_at IS NOT NULL';
  if (typeof database !== 'string') return database.sql(`SELECT encode(name, 'hex') AS name, ${ended}`);
  const file = new DatabaseSync(database, { readOnly: true });
  try {
    return file.prepare(`SELECT hex(name) AS name, ${ended}`).all();
  } finally {
    file.close();
  }
}
