import type { Pause } from '../domain/pause.ts';
import type { Clock } from '../domain/ports/clock.ts';
import { ChainError } from '../domain/ports/ledger-chain.ts';
import type {
  LedgerChain,
  LedgerPart,
  LedgerRoots,
  SigningKeys,
  StoredKey,
} from '../domain/ports/ledger-chain.ts';
import { linkRow } from '../domain/statements/chain.ts';
import { buildTree, leafOf, pathOf, topOf } from '../domain/statements/root.ts';
import type { LedgerRoot, AccountHead, Tree } from '../domain/statements/root.ts';
import { lineOfRow, writeStatement } from '../domain/statements/write-statement.ts';
import type { RootProof, Statement } from '../domain/statements/write-statement.ts';
import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { SigningKey } from '../shared/signing-key.ts';

/** The most rows of one statement: about 2 MB. A further statement goes on behind its last row. */
const maxStatementRows = 10_000;

/** How many rows of a statement are read and hashed at once: about a millisecond, after which requests have their turn. */
const rowsAtOnce = 250;

/** How many rows a statement may have to seal first, as where its account had more in an hour. */
const maxUnsealedRows = 200_000;

/** How long the list of public keys is kept, in milliseconds: anyone may ask for it. */
const keysKeptMs = 5_000;

/** How often a statement is begun again whose rows are folded meanwhile. */
const maxRepeats = 3;

/** What a statement is asked for; times in milliseconds since 1970. */
export interface StatementPeriod {
  readonly fromMs: number | null;
  readonly toMs: number | null;
  /** The row behind which the statement begins, where an earlier one ended. */
  readonly after: number | null;
}

/** The keys that sign statements, and the newest root. */
interface StatementKeys {
  readonly current: string;
  readonly keys: readonly StoredKey[];
  readonly root: LedgerRoot | null;
}

/** Statements of accounts, and what is needed to check them. */
export interface Statements {
  make(
    account: { readonly id: string; readonly name: string },
    period: StatementPeriod,
  ): Promise<string | Refusal>;
  keys(): Promise<StatementKeys>;
  roots: LedgerRoots['listRoots'];
}

interface StatementTools {
  readonly chain: LedgerChain;
  readonly roots: LedgerRoots;
  readonly keys: SigningKeys;
  /** The key of the config; `null` for the one that the database keeps. */
  readonly givenKey: () => SigningKey | null;
  readonly clock: Pick<Clock, 'now' | 'monotonicMs'>;
}

/** Makes statements from the rows of the ledger, and signs them. */
export function createStatements(tools: StatementTools): Statements {
  const { roots, keys, givenKey, clock } = tools;
  const prove = createRootProofs(roots, nextTurn);
  let kept: {
    readonly key: SigningKey | null;
    readonly atMs: number;
    readonly keys: Promise<StatementKeys>;
  } | null = null;
  const readKeys = async (given: SigningKey | null): Promise<StatementKeys> => {
    const { id } = await keys.current(given);
    return { current: id, keys: await keys.list(), root: await roots.lastRoot() };
  };
  return {
    async make(account, period) {
      const { fromMs, toMs } = period;
      if (fromMs !== null && toMs !== null && fromMs > toMs)
        return refuse('invalid_value', "Invalid 'to': it is before 'from'.", { param: 'to' });
      const rows = await readPart(account.id, period, tools);
      if (isRefusal(rows)) return rows;
      const statement = {
        ...rows,
        keyId: account.id,
        name: account.name,
        fromMs,
        toMs,
        madeAtMs: clock.now(),
        proof: await prove(account.id),
      };
      return writeStatement(statement, await keys.current(givenKey()));
    },
    keys() {
      const [given, nowMs] = [givenKey(), clock.monotonicMs()];
      if (kept === null || kept.key?.id !== given?.id || nowMs - kept.atMs > keysKeptMs) {
        const read = readKeys(given);
        kept = { key: given, atMs: nowMs, keys: read };
        read.catch(() => (kept = null));
      }
      return kept.keys;
    },
    roots: (before, limit) => roots.listRoots(before, limit),
  };
}

/** The rows of a statement, and the chain before and behind them. */
type StatementRows = Pick<Statement, 'folded' | 'opening' | 'closing' | 'rows' | 'hasMore'>;

async function readPart(
  keyId: string,
  { fromMs, toMs, after }: StatementPeriod,
  tools: StatementTools,
): Promise<StatementRows | Refusal> {
  for (let repeats = 1; ; repeats++) {
    const part = await tools.chain.find(keyId, fromMs, toMs);
    if (part === null) return refuse('key_not_found', 'No key has this id.');
    const begin = beginningOf(part, after);
    if (isRefusal(begin)) return begin;
    try {
      return await readRows(keyId, part, begin, tools);
    } catch (error) {
      if (!(error instanceof ChainError) || !error.isFolded || repeats === maxRepeats) throw error;
    }
  }
}

/** The row behind which a statement begins. */
function beginningOf({ folded, beforeFrom, last }: LedgerPart, after: number | null): number | Refusal {
  if (after === null) return beforeFrom;
  if (after <= last && after >= folded) return Math.max(after, beforeFrom);
  const why = after > last ? `the last row is ${last}` : `the rows up to ${folded} are folded`;
  return refuse('invalid_value', `Invalid 'after': ${why}.`, { param: 'after' });
}

async function readRows(
  keyId: string,
  { folded, beforeTo }: LedgerPart,
  begin: number,
  { chain }: StatementTools,
): Promise<StatementRows | Refusal> {
  let sealing = 0;
  const end = Math.max(begin, Math.min(beforeTo, begin + maxStatementRows));
  const tooMany = new Error('too many rows to seal');
  const pause = async (): Promise<void> => {
    if (++sealing * 1_000 > maxUnsealedRows) throw tooMany;
    await nextTurn();
  };
  try {
    const opening = await chain.stateAt(keyId, begin, pause);
    const rows: string[] = [];
    let closing = opening;
    while (closing.number < end) {
      const found = await chain.rows(keyId, closing.number, Math.min(end, closing.number + rowsAtOnce));
      for (const row of found) {
        if (row.number !== closing.number + 1) break;
        const linked = linkRow(closing, row);
        rows.push(lineOfRow(linked));
        closing = linked;
      }
      if (found.at(-1)?.number !== closing.number)
        throw new ChainError(`row ${closing.number + 1} is missing`, true);
      await nextTurn();
    }
    return { folded, opening, closing, rows, hasMore: end < beforeTo };
  } catch (error) {
    if (error !== tooMany) throw error;
    return refuse(
      'overloaded',
      'The ledger of this key is being prepared for statements. Try again shortly.',
      {
        retryAfterMs: 1_000,
      },
    );
  }
}

/** The most accounts of which the tree of a root is kept in memory, which takes some 300 bytes for each. */
const maxProvenAccounts = 200_000;

/** The tree of one root. */
interface BuiltTree {
  readonly root: LedgerRoot;
  readonly heads: ReadonlyMap<string, { readonly head: AccountHead; readonly index: number }>;
  readonly tree: Tree;
}

/**
 * Proves that an account is in the last root; `null` where it is not, or there are too many accounts. The tree of the last
 * root is built at its first proof, and kept until the next root.
 */
function createRootProofs(roots: LedgerRoots, pause: Pause) {
  let built: { readonly number: number; readonly tree: Promise<BuiltTree | null> } | null = null;
  return async (keyId: string): Promise<RootProof | null> => {
    const root = await roots.lastRoot();
    if (root === null || root.accounts > maxProvenAccounts) return null;
    if (built?.number !== root.number) {
      const tree = build(root, roots, pause);
      built = { number: root.number, tree };
      tree.catch(() => (built = null));
    }
    const found = await built.tree;
    const entry = found?.heads.get(keyId);
    if (found === null || entry === undefined) return null;
    return { root: found.root, head: entry.head, path: pathOf(found.tree, entry.index) };
  };
}

/** Builds the tree of a root; `null` if the heads that are stored are not those it was made of. */
async function build(root: LedgerRoot, roots: LedgerRoots, pause: Pause): Promise<BuiltTree | null> {
  const heads: AccountHead[] = [];
  for await (const page of roots.headsOf(root.number, pause)) heads.push(...page);
  const tree = buildTree(heads.map(leafOf));
  if (topOf(tree) !== root.tree) return null;
  return { root, tree, heads: new Map(heads.map((head, index) => [head.keyId, { head, index }])) };
}

/** Resolves in the next turn of the event loop: what waits meanwhile, such as a request, has its turn first. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
