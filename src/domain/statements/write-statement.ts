import { exactUsd } from '../../shared/money.ts';
import { asciiText } from './chain.ts';
import type { ChainState } from './chain.ts';
import type { AccountHead, LedgerRoot, PathStep } from './root.ts';
import { signText } from '../../shared/signing-key.ts';
import type { SigningKey } from '../../shared/signing-key.ts';

/** The first line of every statement. */
export const firstLine = 'textgate statement 1';

/** How many digits of the hash of its chain each row has, so that a changed one can be named. */
export const rowHashLength = 16;

/** That an account is in a root. */
export interface RootProof {
  readonly root: LedgerRoot;
  readonly head: AccountHead;
  readonly path: readonly PathStep[];
}

/** What a statement says. */
export interface Statement {
  readonly keyId: string;
  readonly name: string;
  /** The period that was asked for, in milliseconds since 1970; `null` for no bound. */
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly madeAtMs: number;
  /** The last row that was folded, which no statement has; 0 without any. */
  readonly folded: number;
  /** Before the first row, and with the last one. */
  readonly opening: ChainState;
  readonly closing: ChainState;
  /** The lines of the rows. */
  readonly rows: readonly string[];
  /** Whether the period has rows behind the last one. */
  readonly hasMore: boolean;
  readonly proof: RootProof | null;
}

/** The line of a row in a statement. */
export function lineOfRow({ hash, text }: ChainState & { readonly text: string }): string {
  return `row ${hash.slice(0, rowHashLength)} ${text}`;
}

/** Writes a statement as lines of ASCII. The last one is the signature of all bytes before it. */
export function writeStatement(statement: Statement, key: SigningKey): string {
  const { keyId, name, fromMs, toMs, madeAtMs, folded, opening, closing, rows, hasMore, proof } = statement;
  const lines = [
    firstLine,
    `key ${asciiText(keyId)}`,
    `name ${asciiText(name)}`,
    `from ${timeOf(fromMs)}`,
    `to ${timeOf(toMs)}`,
    `made ${timeOf(madeAtMs)}`,
    `folded ${folded}`,
    `opening ${stateOf(opening)}`,
    ...rows,
    `closing ${stateOf(closing)}`,
    `more ${hasMore ? 'yes' : 'no'}`,
    ...(proof === null ? ['root none'] : linesOfProof(proof)),
    `signed-by ${key.id}`,
  ];
  const signed = `${lines.join('\n')}\n`;
  return `${signed}signature ${signText(signed, key)}\n`;
}

function linesOfProof({ root, head, path }: RootProof): readonly string[] {
  return [
    `root ${root.number} ${timeOf(root.madeAtMs)} ${root.previous} ${root.tree}`,
    `head ${head.number} ${head.hash}`,
    ...path.map(({ side, hash }) => `path ${side} ${hash}`),
  ];
}

function stateOf({ number, hash, balanceNanos }: ChainState): string {
  return `${number} ${hash} ${exactUsd(balanceNanos)}`;
}

function timeOf(atMs: number | null): string {
  return atMs === null ? '-' : new Date(atMs).toISOString();
}
