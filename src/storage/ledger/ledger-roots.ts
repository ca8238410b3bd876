import { readPages } from '../../domain/pause.ts';
import type { LedgerRoots } from '../../domain/ports/ledger-chain.ts';
import type { AccountHead, LedgerRoot } from '../../domain/statements/root.ts';
import type { Engine, Row, SqlValue, Statement } from '../engine.ts';
import { readRows, sql } from '../statements.ts';

/** The part of the roots that only reads. */
type RootReads = Omit<LedgerRoots, 'headChanges' | 'storeHeads' | 'storeRoot'>;

/** Reads the roots over all accounts. */
export function createRootReads(engine: Pick<Engine, 'read'>): RootReads {
  const listRoots: LedgerRoots['listRoots'] = async (before, limit) =>
    (await readRows(engine, selectRoots(before ?? Number.MAX_SAFE_INTEGER, limit))).map(readRoot);
  const nextGrown = (last: Row | null) => readRows(engine, selectGrown(last?.['key_id'] ?? ''));
  return {
    listRoots,
    lastRoot: async () => (await listRoots(null, 1))[0] ?? null,
    async *grown(pause) {
      for await (const rows of readPages(nextGrown, accountsPerRead, pause))
        yield rows.map((row) => ({ keyId: String(row['key_id']), number: Number(row['postings']) }));
    },
    async *headsOf(root, pause) {
      const nextHeads = (last: Row | null) => readRows(engine, selectHeads(root, last?.['key_id'] ?? ''));
      for await (const rows of readPages(nextHeads, accountsPerRead, pause))
        yield rows.map((row) => ({
          keyId: String(row['key_id']),
          number: Number(row['number']),
          hash: String(row['hash']),
        }));
    },
  };
}

/** Keeps the roots over all accounts. */
export function createLedgerRoots(engine: Pick<Engine, 'read' | 'run'>): LedgerRoots {
  return {
    ...createRootReads(engine),
    async storeHeads(root, heads) {
      if (heads.length === 0) return;
      await engine.run([countHeadChange, ...heads.flatMap((head) => storeHead(root, head))]);
    },
    async headChanges() {
      const [row] = await readRows(engine, selectHeadChanges);
      return Number(row?.['changes'] ?? 0);
    },
    async storeRoot(root, headChanges) {
      const rows = (await engine.run(storeRoot(root, headChanges))).at(-1) ?? [];
      return rows.length > 0;
    },
  };
}

/** How many accounts are read at once, and have their heads stored in one unit: some milliseconds each. */
const accountsPerRead = 200;

/** The next accounts whose ledgers have grown since the newest head that is stored of them, with their last rows. */
function selectGrown(afterKeyId: SqlValue): Statement {
  return sql`SELECT accounts.key_id AS key_id, postings FROM accounts
    WHERE accounts.key_id > ${afterKeyId} AND postings > coalesce(
      (SELECT number FROM ledger_heads WHERE ledger_heads.key_id = accounts.key_id ORDER BY root DESC LIMIT 1), 0)
    ORDER BY accounts.key_id LIMIT ${accountsPerRead}`;
}

/** How often heads were stored: a root is stored only if none was since its own were read. */
const selectHeadChanges: Statement = sql`SELECT changes FROM ledger_root_work WHERE id = 1`;

/** Locks the making of roots, first in every unit of it, and counts a change of the heads. */
const countHeadChange: Statement = sql`UPDATE ledger_root_work SET changes = changes + 1 WHERE id = 1`;

/**
 * Stores the head of an account for a root that is not made yet, and removes those that only roots before the last one had:
 * the last one must stay provable until the next is there.
 */
function storeHead(root: number, { keyId, number, hash }: AccountHead): readonly Statement[] {
  return [
    sql`DELETE FROM ledger_heads WHERE key_id = ${keyId} AND root <
      (SELECT max(root) FROM ledger_heads WHERE key_id = ${keyId} AND root < ${root})`,
    sql`INSERT INTO ledger_heads (key_id, root, number, hash)
      SELECT CAST(${keyId} AS TEXT), CAST(${root} AS BIGINT), CAST(${number} AS BIGINT), CAST(${hash} AS TEXT)
      WHERE NOT EXISTS (SELECT 1 FROM ledger_roots WHERE number >= ${root})
      ON CONFLICT (key_id, root) DO UPDATE SET number = excluded.number, hash = excluded.hash`,
  ];
}

/** The next heads of a root: of each account the newest one that is not of a later root. */
function selectHeads(root: number, afterKeyId: SqlValue): Statement {
  return sql`SELECT key_id, number, hash FROM ledger_heads WHERE key_id > ${afterKeyId} AND root = (
      SELECT max(others.root) FROM ledger_heads AS others
      WHERE others.key_id = ledger_heads.key_id AND others.root <= ${root})
    ORDER BY key_id LIMIT ${accountsPerRead}`;
}

/** The roots before a number, newest first. */
function selectRoots(before: number, limit: number): Statement {
  return sql`SELECT number, created_at, previous, tree, accounts, hash FROM ledger_roots
    WHERE number < ${before} ORDER BY number DESC LIMIT ${limit}`;
}

/** Stores a root behind the last one, unless heads were stored since they were counted. */
function storeRoot(
  { number, madeAtMs, previous, tree, accounts, hash }: LedgerRoot,
  headChanges: number,
): readonly Statement[] {
  return [
    sql`UPDATE ledger_root_work SET changes = changes WHERE id = 1`,
    sql`INSERT INTO ledger_roots (number, created_at, previous, tree, accounts, hash)
      SELECT CAST(${number} AS BIGINT), CAST(${madeAtMs} AS BIGINT), CAST(${previous} AS TEXT),
        CAST(${tree} AS TEXT), CAST(${accounts} AS BIGINT), CAST(${hash} AS TEXT)
      FROM ledger_root_work WHERE id = 1 AND changes = ${headChanges}
      ON CONFLICT (number) DO NOTHING RETURNING number`,
  ];
}

function readRoot(row: Row): LedgerRoot {
  return {
    number: Number(row['number']),
    madeAtMs: Number(row['created_at']),
    previous: String(row['previous']),
    tree: String(row['tree']),
    accounts: Number(row['accounts']),
    hash: String(row['hash']),
  };
}
