import { digest } from '../../shared/digest.ts';
import { exactUsd } from '../../shared/money.ts';

/** A row of the ledger as it is in the chain of its account. */
export interface LedgerRow {
  readonly number: number;
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
  readonly kind: 'credit' | 'charge';
  /** In nano-USD; a charge is negative. */
  readonly deltaNanos: number;
  /** The request that was charged, or the payment that was booked; `null` for a credit of an early version. */
  readonly reference: string | null;
}

/** An account's chain up to one of its rows. */
export interface ChainState {
  /** The number of the row; 0 before the first one. */
  readonly number: number;
  /** 64 hexadecimal digits. */
  readonly hash: string;
  /** The sum of the rows up to it, in nano-USD. */
  readonly balanceNanos: number;
}

/**
 * Where the chain of an account begins: before its first row, or behind the rows that were folded before there were chains.
 * The id of the account is in every hash through this one.
 */
export function startOfChain(keyId: string, number = 0, balanceNanos = 0): ChainState {
  const text = `textgate ledger 1\n${asciiText(keyId)} ${number} ${exactUsd(balanceNanos)}\n`;
  return { number, hash: digest(text), balanceNanos };
}

/** The hash of a chain with one more row, whose text a statement has. */
export function linkHash(previous: string, text: string): string {
  return digest(`${previous}\n${text}\n`);
}

/** A row behind a state: its text in a statement, and the state with it. */
export function linkRow(state: ChainState, row: LedgerRow): ChainState & { readonly text: string } {
  const { number, createdAtMs, kind, deltaNanos, reference } = row;
  const balanceNanos = state.balanceNanos + deltaNanos;
  const time = new Date(createdAtMs).toISOString();
  const what = reference === null ? '-' : asciiText(reference);
  const text = `${number} ${time} ${kind} ${exactUsd(deltaNanos)} ${exactUsd(balanceNanos)} ${what}`;
  return { number, hash: linkHash(state.hash, text), balanceNanos, text };
}

/**
 * Writes a text as a JSON string of printable ASCII: it has no line feed in it, and the same bytes in every encoding that a
 * file may be opened with.
 */
export function asciiText(text: string): string {
  return JSON.stringify(text).replace(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
