import type { Pause } from '../domain/pause.ts';
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
  readonly clock: Pick<Clock, 'now'>;
  /** Waits between two steps; rejects when the work is to stop. */
  readonly pause: Pause;
  /** Takes what is wrong with the ledger of an account, which keeps the head that it had. */
  readonly onFault: (fault: ChainError) => void;
}

/**
 * Seals the ledgers that have grown since the last root, and makes the next one over all of them. A work that was broken off
 * is done again by the next one. `null` where no account has a ledger row, or another process has made the root meanwhile.
 */
export async function makeRoot(tools: RootTools): Promise<LedgerRoot | null> {
  const { roots, clock, pause } = tools;
  const last = await roots.lastRoot();
  const number = (last?.number ?? 0) + 1;
  for await (const accounts of roots.grown(pause))
    await roots.storeHeads(number, await seal(accounts, tools));
  const headChanges = await roots.headChanges();
  const leaves: string[] = [];
  for await (const heads of roots.headsOf(number, pause)) leaves.push(...heads.map(leafOf));
  const tree = topOf(buildTree(leaves));
  if (tree === undefined) return null;
  const made = { number, madeAtMs: clock.now(), previous: last?.hash ?? noPrevious, tree };
  const root = { ...made, accounts: leaves.length, hash: hashOfRoot(made) };
  return (await roots.storeRoot(root, headChanges)) ? root : null;
}

async function seal(
  accounts: readonly Omit<AccountHead, 'hash'>[],
  { chain, pause, onFault }: RootTools,
): Promise<readonly AccountHead[]> {
  const heads: AccountHead[] = [];
  for (const [at, { keyId, number }] of accounts.entries()) {
    if (at > 0 && at % accountsPerPause === 0) await pause();
    try {
      const { hash } = await chain.stateAt(keyId, number, pause);
      heads.push({ keyId, number, hash });
    } catch (error) {
      if (!(error instanceof ChainError)) throw error;
      onFault(error);
    }
  }
  return heads;
}
