import { setTimeout as wait } from 'node:timers/promises';
import { costOfServed } from '../numbered-price.ts';
import { countedApart, keyOf } from '../numbered-upstream.ts';
import type { ServedQuestion } from '../numbered-upstream.ts';
import type { Cluster } from './cluster.ts';

/** How long requests may stay open once their processes are dead or their answers out, in milliseconds. */
const closedMs = 40_000;
const lookMs = 250;

/** The rows of the database beside the notes of the upstream and of the clients. */
export interface BookCheck {
  readonly faults: readonly string[];
  /** Records by their outcome. */
  readonly outcomes: ReadonlyMap<string, number>;
  /** Settlements of records that were closed as lost before. */
  readonly overtaken: number;
  /** Settlements of records whose beginning the database had forgotten. */
  readonly rebuilt: number;
  /** Answers that the upstream gave whole and no client paid for: their gateway was gone. */
  readonly unpaid: number;
  /** Answers that clients received whole and no record is of. */
  readonly forgotten: number;
}

/** Verifies the ledger while the gateways run; returns what is wrong. */
export async function verifyLedger({ nodes }: Cluster): Promise<readonly string[]> {
  const [node] = nodes;
  const found = (await node?.served.ask('GET', '/ledger')) as { faults?: readonly string[]; error?: unknown };
  return found.faults ?? [`the ledger could not be verified: ${JSON.stringify(found.error)}`];
}

/** Waits until no request is open. Returns what is wrong: those that stay. */
async function waitUntilClosed(cluster: Cluster): Promise<readonly string[]> {
  const giveUpMs = performance.now() + closedMs;
  for (;;) {
    const open = await cluster.sql('SELECT request_id, owner FROM open_requests');
    if (open.length === 0) return [];
    if (performance.now() > giveUpMs)
      return [`${open.length} requests stay open: ${JSON.stringify(open.slice(0, 3))}`];
    await wait(lookMs);
  }
}

/**
 * Compares the ledger with what upstream and clients noted, row by row, once nothing runs any more: every answer that a
 * client received whole has one completed record, charged by the upstream's count; nothing is charged that the upstream
 * did not serve, or charged twice. `maxForgotten` answers may be without a record.
 */
export async function checkBooks(cluster: Cluster, maxForgotten = 0): Promise<BookCheck> {
  const faults: string[] = [...(await waitUntilClosed(cluster)), ...(await verifyLedger(cluster))];
  const records = await cluster.sql(
    'SELECT request_id, key_id, outcome, charge, input_tokens, output_tokens, usage_source, late FROM records',
  );
  const charges = await cluster.sql(`SELECT request_id, delta FROM ledger WHERE kind = 'charge'`);
  const posted = new Map<string, number>();
  for (const { request_id: id, delta } of charges) {
    if (posted.has(String(id))) faults.push(`${String(id)}: charged twice`);
    posted.set(String(id), Number(delta));
  }
  const questions = questionsByTokens(cluster);
  const paid = new Map<number, string>();
  const outcomes = new Map<string, number>();
  const settled = new Set<string>();
  let [overtaken, rebuilt] = [0, 0];
  for (const row of records) {
    const requestId = String(row['request_id']);
    const outcome = String(row['outcome']);
    const charge = Number(row['charge']);
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    if (Number(row['late']) === 1) overtaken++;
    if (Number(row['late']) === 2) rebuilt++;
    if (outcome === 'completed') settled.add(requestId);
    if (charge !== -(posted.get(requestId) ?? 0))
      faults.push(`${requestId}: charged ${charge}, posted otherwise`);
    posted.delete(requestId);
    const answered = cluster.acknowledged.get(requestId);
    if (charge === 0) {
      if (outcome === 'completed') faults.push(`${requestId}: completed, but not charged`);
      continue;
    }
    const question = questions.get(`${String(row['key_id'])} ${Number(row['input_tokens'])}`);
    if (question === undefined) {
      faults.push(`${requestId}: ${outcome}, charged ${charge} for nothing that the upstream served`);
      continue;
    }
    const [number, served] = question;
    const first = paid.get(number);
    if (first !== undefined) faults.push(`question ${number} is charged twice: ${first} and ${requestId}`);
    paid.set(number, requestId);
    if (answered !== undefined && answered !== number)
      faults.push(`${requestId}: question ${answered} was answered, but ${number} is charged`);
    if (!served.isWhole)
      faults.push(`${requestId}: ${outcome}, charged for an answer that was not given whole`);
    if (charge !== costOfServed(served))
      faults.push(`${requestId}: charged ${charge}, not ${costOfServed(served)}`);
  }
  for (const requestId of posted.keys()) faults.push(`${requestId}: charged without a record`);
  const forgotten = [...cluster.acknowledged.keys()].filter((requestId) => !settled.has(requestId));
  if (forgotten.length > maxForgotten)
    faults.push(
      `${forgotten.length} whole answers without a completed record: ${forgotten.slice(0, 3).join()}`,
    );
  const whole = [...cluster.upstream.served].filter(([, { isWhole }]) => isWhole);
  const unpaid = whole.filter(([number]) => !paid.has(number)).length;
  return { faults, outcomes, overtaken, rebuilt, unpaid, forgotten: forgotten.length };
}

/** The questions that the upstream served, by key and count of input tokens. */
function questionsByTokens({
  upstream,
  keys,
}: Cluster): ReadonlyMap<string, readonly [number, ServedQuestion]> {
  if (upstream.served.size > countedApart)
    throw new Error('more questions than counts of tokens that differ');
  const found = new Map<string, readonly [number, ServedQuestion]>();
  for (const [number, served] of upstream.served) {
    const key = keys[keyOf(number) - 1];
    found.set(`${key?.id} ${served.input}`, [number, served]);
  }
  return found;
}

/** The keys of which more ran at once at the upstream than their limit says. */
export function findExcess({ keys, upstream }: Cluster): readonly string[] {
  return keys
    .filter(({ number, concurrency }) => upstream.mostAtOnce(number) > concurrency)
    .map(
      ({ number, concurrency }) =>
        `key ${number}: ${upstream.mostAtOnce(number)} at once, with a limit of ${concurrency}`,
    );
}

/** Deadlocks that the server has counted in this database. */
export async function countDeadlocks(cluster: Cluster): Promise<number> {
  const [row] = await cluster.sql(
    'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
  );
  return Number(row?.['deadlocks'] ?? 0);
}
