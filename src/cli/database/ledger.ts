import { count } from '../../shared/count.ts';
import { awaitAdmin } from '../admin-client.ts';
import type { Json } from '../output.ts';

/** Recomputes the running gateway's ledger. Throws with all of its faults. */
export async function verifyLedger({ json }: Json): Promise<string> {
  const found = await awaitAdmin<{
    accounts: number;
    records: number;
    faults: readonly string[];
  }>('/admin/ledger');
  if (found.faults.length > 0) throw new Error(`the ledger does not balance:\n${found.faults.join('\n')}`);
  if (json) return JSON.stringify(found);
  return `the ledger balances: ${count(found.accounts, 'account')}, ${count(found.records, 'record')}`;
}
