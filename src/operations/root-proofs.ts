import type { Pause } from '../domain/pause.ts';
import type { LedgerRoots } from '../domain/ports/ledger-chain.ts';
import { buildTree, leafOf, pathOf, topOf } from '../domain/statements/root.ts';
import type { AccountHead, LedgerRoot, Tree } from '../domain/statements/root.ts';
import type { RootProof } from '../domain/statements/write-statement.ts';

/** The most accounts of which the tree of a root is kept in memory, which takes some 300 bytes for each. */
const maxProvenAccounts = 200_000;

/** The tree of one root. */
interface BuiltTree {
  readonly root: LedgerRoot;
  readonly heads: ReadonlyMap<string, { readonly head: AccountHead; readonly index: number }>;
  readonly tree: Tree;
}

/** Proves that an account is in the last root; `null` where it is not, or there are too many accounts. */
export type ProveInRoot = (keyId: string) => Promise<RootProof | null>;

/** The tree of the last root is built at its first proof, and kept until the next root. */
export function createRootProofs(roots: LedgerRoots, pause: Pause): ProveInRoot {
  let built: { readonly number: number; readonly tree: Promise<BuiltTree | null> } | null = null;
  return async (keyId) => {
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
