import { readPages } from '../../domain/pause.ts';
import type { Pause } from '../../domain/pause.ts';
import type { LedgerAudit } from '../../domain/ports/ledger-audit.ts';
import { ChainError } from '../../domain/ports/ledger-chain.ts';
import { buildTree, hashOfRoot, leafOf, noPrevious, topOf } from '../../domain/statements/root.ts';
import type { LedgerRoot } from '../../domain/statements/root.ts';
import { auditFaults } from '../audit/audit-chain.ts';
import type { Engine, Row, Statement } from '../engine.ts';
import { readRows, sql } from '../statements.ts';
import { nextSeal, recompute, rowsPerStep } from './ledger-chain.ts';
import { createRootReads } from './ledger-roots.ts';

/** How many accounts and roots are read at once. */
const entriesPerRead = 500;

type Reader = Pick<Engine, 'read'>;

/** Holds the ledger against its seals and roots. A limited audit goes on where the one before it has stopped. */
export function createSealAudit(engine: Reader): LedgerAudit['sealFaults'] {
  let place = '';
  return async function* sealFaults(pause, mostRows) {
    if (mostRows === null) {
      yield* auditAll(engine, pause);
      return;
    }
    let left = mostRows;
    for await (const accounts of sealedAccounts(engine, place, pause))
      for (const { keyId, folded, sealed } of accounts) {
        place = keyId;
        if (sealed <= folded) continue;
        left -= ((sealed - 1) % rowsPerStep) + 1;
        yield* faultsOf(engine, keyId, Math.max(folded, sealed - 1), sealed, pause);
        if (left <= 0) return;
      }
    place = '';
  };
}

async function* auditAll(engine: Reader, pause: Pause): AsyncGenerator<readonly string[]> {
  for await (const accounts of sealedAccounts(engine, '', pause))
    for (const { keyId, folded, sealed } of accounts) yield* faultsOf(engine, keyId, folded, sealed, pause);
  yield* auditFaults(engine, pause);
  yield* auditRoots(engine, pause);
}

/** The accounts behind one, each with the last row that was sealed. */
function sealedAccounts(engine: Reader, afterKeyId: string, pause: Pause) {
  const next = async (last: SealedAccount | null) =>
    (await readRows(engine, selectSealedAccounts(last?.keyId ?? afterKeyId))).map(readAccount);
  return readPages(next, entriesPerRead, pause);
}

/** The next accounts, with the last rows that were sealed or are in a root. */
function selectSealedAccounts(afterKeyId: string): Statement {
  return sql`SELECT accounts.key_id AS key_id, coalesce(ledger_folds.number, 0) AS folded,
      coalesce((SELECT ledger_seals.number FROM ledger_seals WHERE ledger_seals.key_id = accounts.key_id
        ORDER BY ledger_seals.number DESC LIMIT 1), 0) AS sealed,
      coalesce((SELECT ledger_heads.number FROM ledger_heads WHERE ledger_heads.key_id = accounts.key_id
        ORDER BY root DESC LIMIT 1), 0) AS head
    FROM accounts LEFT JOIN ledger_folds ON ledger_folds.key_id = accounts.key_id
    WHERE accounts.key_id > ${afterKeyId} ORDER BY accounts.key_id LIMIT ${entriesPerRead}`;
}

type SealedAccount = ReturnType<typeof readAccount>;

function readAccount(row: Row) {
  return {
    keyId: String(row['key_id']),
    folded: Number(row['folded']),
    sealed: Math.max(Number(row['sealed']), Number(row['head'])),
  };
}

/** What contradicts the seals of an account between two rows. Rows that are folded meanwhile were held against them then. */
async function* faultsOf(
  engine: Reader,
  keyId: string,
  after: number,
  upTo: number,
  pause: Pause,
): AsyncGenerator<readonly string[]> {
  for (let from = after; from < upTo; await pause()) {
    const to = Math.min(nextSeal(from), upTo);
    try {
      await recompute(engine, keyId, from, to);
      from = to;
    } catch (error) {
      if (!(error instanceof ChainError)) throw error;
      const folded = await readFolded(engine, keyId);
      if (folded <= after) {
        yield [`${keyId}: its ledger is not what was sealed: ${error.message}`];
        return;
      }
      yield* faultsOf(engine, keyId, folded, upTo, pause);
      return;
    }
  }
}

async function readFolded(engine: Reader, keyId: string): Promise<number> {
  const [row] = await readRows(engine, sql`SELECT number FROM ledger_folds WHERE key_id = ${keyId}`);
  return Number(row?.['number'] ?? 0);
}

/** Whether each root follows from the one before it, and the last one from the heads of the accounts. */
async function* auditRoots(engine: Reader, pause: Pause): AsyncGenerator<readonly string[]> {
  const roots = createRootReads(engine);
  const last = await roots.lastRoot();
  if (last === null) return;
  const faults: string[] = [];
  let next: LedgerRoot | null = null;
  const read = (before: LedgerRoot | null) => roots.listRoots(before?.number ?? null, entriesPerRead);
  for await (const page of readPages(read, entriesPerRead, pause))
    for (const root of page) {
      if (hashOfRoot(root) !== root.hash)
        faults.push(`ledger root ${root.number}: its hash is not that of what it has`);
      if (next !== null && next.previous !== root.hash)
        faults.push(`ledger root ${next.number}: the one before it is not ${root.number} as it is stored`);
      next = root;
    }
  if (next?.previous !== noPrevious) faults.push(`ledger root ${next?.number}: the one before it is missing`);
  const leaves: string[] = [];
  for await (const heads of roots.headsOf(last.number, pause)) leaves.push(...heads.map(leafOf));
  if (topOf(buildTree(leaves)) !== last.tree)
    faults.push(`ledger root ${last.number}: it is not that of the heads that are stored`);
  if (faults.length > 0) yield faults;
}
