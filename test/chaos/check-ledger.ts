import { DatabaseSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { requestKeyOf } from '../../src/storage/records/request-key.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createUsageRollups } from '../../src/storage/usage/usage-rollups.ts';
import { createUsage } from '../../src/storage/usage/usage-store.ts';
import { openThreadedEngine } from '../support/test-engine.ts';
import { readUsage, sumRecords } from '../support/usage-sums.ts';
import type { Acknowledged } from './numbered-client.ts';
import { costOfServed } from './numbered-price.ts';
import type { ServedTokens } from './numbered-upstream.ts';

/** The result of checking a database after a run. */
export interface BookCheck {
  /** Every difference between the ledger and the observations of clients and upstream; empty when there is none. */
  readonly faults: readonly string[];
  /** Records that are not settled yet. */
  readonly open: number;
}

/**
 * Verifies the ledger of a database file that no process uses, and that each answer which a client received whole has one
 * settled record with one ledger entry, charged by the upstream's count.
 */
export async function checkLedger(
  file: string,
  acknowledged: Acknowledged,
  served: ReadonlyMap<number, ServedTokens>,
): Promise<BookCheck> {
  const engine = openThreadedEngine(file);
  await engine.ready;
  const verification = await verifyLedger(createLedgerAudit(engine));
  const usageFaults = await checkUsage(engine);
  await engine.close();
  const database = new DatabaseSync(file, { readOnly: true });
  const find = database.prepare(
    'SELECT outcome, charge FROM records WHERE created_at = ? AND tail = unhex(?)',
  );
  const posted = new Map<string, number[]>();
  for (const row of database
    .prepare(`SELECT request_id, delta FROM ledger WHERE kind = 'charge'`)
    .iterate()) {
    const id = String(row['request_id']);
    posted.set(id, [...(posted.get(id) ?? []), Number(row['delta'])]);
  }
  const faults = [...verification.faults, ...usageFaults];
  for (const [requestId, number] of acknowledged) {
    const cost = costOfServed(served.get(number));
    const { createdAtMs, tail } = requestKeyOf(requestId);
    const record = find.get(createdAtMs, tail);
    const deltas = posted.get(requestId) ?? [];
    if (record?.['outcome'] !== 'completed')
      faults.push(`${requestId}: acknowledged, but ${String(record?.['outcome'])}`);
    if (record?.['charge'] !== cost)
      faults.push(`${requestId}: charged ${String(record?.['charge'])}, not ${cost}`);
    if (deltas.length !== 1 || deltas[0] !== -cost)
      faults.push(`${requestId}: posted ${JSON.stringify(deltas)}`);
  }
  const open = database.prepare('SELECT count(*) AS count FROM open_requests').get();
  database.close();
  return { faults, open: Number(open?.['count'] ?? 0) };
}

const dayMs = 86_400_000;

/** What usage says of a record. */
const counted = `request_id, created_at, key_id, model, upstream, outcome, tag, group_name, charge, input_tokens, cached_input_tokens,
  cache_write_tokens, output_tokens, reasoning_tokens`;

/**
 * Compares usage with the sums of all records, and again once the running day is rolled up, as if it were over: the requests
 * of the next run find it so, and have to mark it.
 */
async function checkUsage(engine: Engine): Promise<readonly string[]> {
  const faults: string[] = [];
  const compare = async (when: string): Promise<void> => {
    const [rows = []] = await engine.read([{ sql: `SELECT ${counted} FROM records`, values: [] }]);
    const records = new Map(rows.map((row) => [String(row['request_id']), row]));
    const range = { fromMs: 0, toMs: Math.ceil(Date.now() / dayMs) * dayMs + dayMs, where: {} };
    for (const by of [
      ['hour', 'key', 'group', 'model', 'upstream', 'outcome', 'tag'],
      ['day', 'key'],
      ['month'],
    ] as const) {
      const found = await readUsage(createUsage(engine), { ...range, by }, 1_000);
      const expected = sumRecords(records, { ...range, by });
      if (!isDeepStrictEqual(found, expected))
        faults.push(`usage by ${by.join()} is not that of the records ${when}`);
    }
  };
  await compare('after the kill');
  await createUsageRollups(engine).rollUp(Date.now() + 40 * dayMs, setImmediate);
  await compare('once it is rolled up');
  return faults;
}
