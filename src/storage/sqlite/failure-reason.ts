import type { StorageReason } from '../../domain/storage-refusal.ts';
import type { UnitFailure } from './thread-messages.ts';

/** By SQLite's primary result codes (https://sqlite.org/rescode.html). */
const reasonByCode: ReadonlyMap<number, StorageReason> = new Map([
  [5, 'locked'],
  [6, 'locked'],
  [8, 'read_only'],
  [10, 'io'],
  [11, 'damaged'],
  [13, 'full'],
  [14, 'unavailable'],
  [18, 'rejected'],
  [19, 'rejected'],
  [20, 'rejected'],
  [25, 'rejected'],
  [26, 'damaged'],
]);

/** Why a unit failed, by SQLite's extended result code: its lowest byte is the primary one. */
export function reasonOf(code: number | undefined): StorageReason {
  return code === undefined ? 'unknown' : (reasonByCode.get(code & 0xff) ?? 'unknown');
}

/** SQLITE_MISMATCH, for values that Node rejects before they reach SQLite: the same unit fails again. */
const mismatch = 20;
const nodeMismatches = new Set(['ERR_INVALID_ARG_TYPE', 'ERR_INVALID_ARG_VALUE', 'ERR_OUT_OF_RANGE']);

/** Why a unit failed, as a reply carries it. */
export function failureOf(error: unknown): UnitFailure {
  if (!(error instanceof Error)) return { error: String(error) };
  const { message, code, errcode } = error as NodeJS.ErrnoException & { readonly errcode?: number };
  if (errcode !== undefined) return { error: message, code: errcode };
  return nodeMismatches.has(code ?? '') ? { error: message, code: mismatch } : { error: message };
}
