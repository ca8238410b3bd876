import type { Pause } from '../domain/pause.ts';
import { auditChainId } from '../domain/audit/audit-line.ts';
import type { AuditChain } from '../domain/ports/audit.ts';
import type { Clock } from '../domain/ports/clock.ts';
import { ChainError } from '../domain/ports/ledger-chain.ts';
import type { LedgerChain, LedgerRoots } from '../domain/ports/ledger-chain.ts';
import { buildTree, hashOfRoot, leafOf, noPrevious, topOf } from '../domain/statements/root.ts';
import type { AccountHead, LedgerRoot } from '../domain/statements/root.ts';

/** How many accounts are sealed between two pauses: some milliseconds of reads. */
const accountsPerPause = 20;

/** What a root is made with. */
export interface RootTools {
  readonly chain: LedgerChain;
  readonly roots: LedgerRoots;
  readonly audit: Pick<AuditChain, 'head'>;
  readonly clock: Pick<Clock, 'now'>;
  /** Waits between two steps; rejects when the work is to stop. */
  readonly pause: Pause;
  /** Takes what is wrong with the ledger of an account, which keeps the head that it had. */
  readonly onFault: (fault: ChainError) => void;
}

/**
 * Seals the ledgers and the audit that have grown since the last root, and makes the next one over all of them. A work that was
 * broken off is done again by the next one. `null` where there is nothing yet, or another process has made the root meanwhile.
 */
export async function makeRoot(tools: RootTools): Promise<LedgerRoot | null> {
  const { roots, audit, clock, pause } = tools;
  const last = await roots.lastRoot();
  const number = (last?.number ?? 0) + 1;
  for await (const accounts of roots.grown(pause))
    await roots.storeHeads(number, await seal(accounts, tools));
  const ofAudit = await reporting(audit.head(pause), tools);
  if (ofAudit !== null) await roots.storeHeads(number, [ofAudit]);
  const headChanges = await roots.headChanges();
  const leaves: string[] = [];
  let accounts = 0;
  for await (const heads of roots.headsOf(number, pause)) {
    leaves.push(...heads.map(leafOf));
    accounts += heads.filter(({ keyId }) => keyId !== auditChainId).length;
  }
  const tree = topOf(buildTree(leaves));
  if (tree === undefined) return null;
  const made = { number, madeAtMs: clock.now(), previous: last?.hash ?? noPrevious, tree };
  const root = { ...made, accounts, hash: hashOfRoot(made) };
  return (await roots.storeRoot(root, headChanges)) ? root : null;
}

async function seal(
  accounts: readonly Omit<AccountHead, 'hash'>[],
  tools: RootTools,
): Promise<readonly AccountHead[]> {
  const { chain, pause } = tools;
  const heads: AccountHead[] = [];
  for (const [at, { keyId, number }] of accounts.entries()) {
    if (at > 0 && at % accountsPerPause === 0) await pause();
    const state = await reporting(chain.stateAt(keyId, number, pause), tools);
    if (state !== null) heads.push({ keyId, number, hash: state.hash });
  }
  return heads;
}

/** What some work on a chain results in; `null` where the chain has a fault, which is reported. */
async function reporting<Result>(
  work: Promise<Result>,
  { onFault }: Pick<RootTools, 'onFault'>,
): Promise<Result | null> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    onFault(error);
    return null;
  }
}
