import { asciiText } from './chain.ts';
import { digest } from '../../shared/digest.ts';
import type { ChainState } from './chain.ts';

/** The chain of one account up to the row that a root has of it. */
export interface AccountHead extends Pick<ChainState, 'number' | 'hash'> {
  readonly keyId: string;
}

/** One hash over the chains of all accounts, and over the root before it. Hashes are 64 hexadecimal digits. */
export interface LedgerRoot {
  /** From 1 on. */
  readonly number: number;
  /** Milliseconds since 1970. */
  readonly madeAtMs: number;
  /** The hash of the root before it; 64 zeros for the first one. */
  readonly previous: string;
  /** The top of the tree over the heads of all accounts, in the order of the bytes of their ids. */
  readonly tree: string;
  readonly accounts: number;
  readonly hash: string;
}

/** A hash beside the way from a leaf of a tree to its top, and on which side it is. */
export interface PathStep {
  readonly side: 'left' | 'right';
  readonly hash: string;
}

/** What the first root has as the one before it. */
export const noPrevious = '0'.repeat(64);

/** The leaf of an account. */
export function leafOf({ keyId, number, hash }: AccountHead): string {
  return digest(`textgate head 1\n${asciiText(keyId)} ${number} ${hash}\n`);
}

function nodeOf(left: string, right: string): string {
  return digest(`textgate node 1\n${left} ${right}\n`);
}

/** The hash of a root. The number of accounts is not in it: a statement shows all that is, and is not for that. */
export function hashOfRoot({
  number,
  madeAtMs,
  previous,
  tree,
}: Omit<LedgerRoot, 'accounts' | 'hash'>): string {
  return hashOfRootLine(`${number} ${new Date(madeAtMs).toISOString()} ${previous} ${tree}`);
}

/** The same of what a statement says of it. */
export function hashOfRootLine(text: string): string {
  return digest(`textgate root 1\n${text}\n`);
}

/** A tree over leaves: each level has half as many hashes as the one before, and the last one has one. */
export type Tree = readonly (readonly string[])[];

/** Builds a tree. The last one of an odd number of hashes goes up as it is. */
export function buildTree(leaves: readonly string[]): Tree {
  const levels = [leaves];
  for (let level = leaves; level.length > 1;) {
    const below = level;
    level = Array.from({ length: Math.ceil(below.length / 2) }, (_, at) => {
      const [left = '', right] = below.slice(at * 2, at * 2 + 2);
      return right === undefined ? left : nodeOf(left, right);
    });
    levels.push(level);
  }
  return levels;
}

/** The top of a tree; `undefined` without leaves. */
export function topOf(tree: Tree): string | undefined {
  return tree.at(-1)?.[0];
}

/** The way from the leaf at an index to the top. */
export function pathOf(tree: Tree, index: number): readonly PathStep[] {
  const steps: PathStep[] = [];
  for (let [level, at] = [0, index]; level < tree.length - 1; level++, at = Math.floor(at / 2)) {
    const isRight = at % 2 === 1;
    const hash = tree[level]?.[isRight ? at - 1 : at + 1];
    if (hash !== undefined) steps.push({ side: isRight ? 'left' : 'right', hash });
  }
  return steps;
}

/** The top to which a path leads from a leaf. */
export function followPath(leaf: string, path: readonly PathStep[]): string {
  return path.reduce(
    (hash, step) => (step.side === 'left' ? nodeOf(step.hash, hash) : nodeOf(hash, step.hash)),
    leaf,
  );
}
