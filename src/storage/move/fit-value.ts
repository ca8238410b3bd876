import type { ColumnType, CopiedColumn } from './plan-table.ts';

/** The largest integers of the types; the smallest are one below their negatives. */
const largest: Readonly<Record<Exclude<ColumnType, 'text'>, bigint>> = {
  bigint: 2n ** 63n - 1n,
  integer: 2n ** 31n - 1n,
};

/** A value of SQLite as PostgreSQL reads it from a text. */
export type FittedValue =
  | { readonly kind: 'fits'; readonly text: string | null }
  | { readonly kind: 'unfit'; readonly why: string };

/**
 * Writes a value for a column of PostgreSQL. SQLite keeps values of any type in a column, and characters that PostgreSQL
 * can't store: such a value is `unfit`, and nothing is rounded or cut.
 */
export function fitValue(value: unknown, { type, isNullable }: CopiedColumn): FittedValue {
  if (value === null) return isNullable ? { kind: 'fits', text: null } : unfit('is null, and needs a value');
  return type === 'text' ? fitText(value) : fitInteger(value, type);
}

function fitText(value: unknown): FittedValue {
  if (typeof value !== 'string') return unfit('is no text');
  if (value.includes('\0')) return unfit("has the character U+0000, which PostgreSQL can't store");
  return { kind: 'fits', text: value };
}

function fitInteger(value: unknown, type: Exclude<ColumnType, 'text'>): FittedValue {
  if (typeof value !== 'bigint') return unfit('is no whole number');
  if (value > largest[type] || value < -largest[type] - 1n)
    return unfit(`is too large for PostgreSQL's ${type}`);
  return { kind: 'fits', text: String(value) };
}

function unfit(why: string): FittedValue {
  return { kind: 'unfit', why };
}
