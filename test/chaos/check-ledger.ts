import { DatabaseSync } from 'node:sqlite';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { createLedgerAudit } from '../../src/storage/ledger/ledger-audit.ts';
import { openTestEngine } from '../support/test-engine.ts';
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
  const engine = openTestEngine(file);
  await engine.ready;
  const verification = await verifyLedger(createLedgerAudit(engine));
  await engine.close();
  const database = new DatabaseSync(file, { readOnly: true });
  const find = database.prepare('SELECT outcome, charge FROM records WHERE request_id = ?');
  const post = database.prepare(
    'SELECT count(*) AS count, sum(delta) AS delta FROM ledger WHERE request_id = ?',
  );
  const faults = [...verification.faults];
  for (const [requestId, number] of acknowledged) {
    const cost = costOfServed(served.get(number));
    const record = find.get(requestId);
    const posted = post.get(requestId);
    if (record?.['outcome'] !== 'completed')
      faults.push(`${requestId}: acknowledged, but ${String(record?.['outcome'])}`);
    if (record?.['charge'] !== cost)
      faults.push(`${requestId}: charged ${String(record?.['charge'])}, not ${cost}`);
    if (posted?.['count'] !== 1 || posted['delta'] !== -cost)
      faults.push(`${requestId}: posted ${JSON.stringify(posted)}`);
  }
  const open = database.prepare('SELECT count(*) AS count FROM open_requests').get();
  database.close();
  return { faults, open: Number(open?.['count'] ?? 0) };
}
