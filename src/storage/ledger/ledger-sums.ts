import type { Pause } from '../../domain/pause.ts';
import type { Engine, Row, Statement } from '../engine.ts';

/** How many rows of the ledger are added up in one read, and of how many accounts: it takes a few milliseconds. */
const rowsPerRead = 2_000;
const accountsPerRead = 100;

/** What some ledger rows of one account amount to. */
export interface LedgerSum {
  readonly ledgerNanos: number;
  readonly chargedNanos: number;
  readonly ledgerRows: number;
}

/** An account's ledger as it was at one moment: the rows behind those that are folded, up to a number. */
export interface NumberedLedger {
  readonly keyId: string;
  /** The number of the last folded row; 0 without any. */
  readonly folded: number;
  /** The highest number of its rows; 0 without any. */
  readonly lastNumber: number;
}

/** Rows of one account's ledger that follow each other, at most as many as one read adds up. */
interface LedgerRange {
  readonly keyId: string;
  /** The number before the first row. */
  readonly after: number;
  readonly upTo: number;
}

/** What no rows amount to. */
export const noRows: LedgerSum = { ledgerNanos: 0, chargedNanos: 0, ledgerRows: 0 };

/**
 * Adds up the ledgers of some accounts behind what is folded, in as many reads as they need. The reads may be of several
 * moments: rows are never changed, those that come meanwhile have higher numbers, and whether some were folded is asked later.
 */
export async function sumLedgers(
  engine: Pick<Engine, 'read'>,
  ledgers: readonly NumberedLedger[],
  pause: Pause,
): Promise<ReadonlyMap<string, LedgerSum>> {
  const sums = new Map<string, LedgerSum>();
  for (const [index, ranges] of readsOf(ledgers.flatMap(rangesOf)).entries()) {
    if (index > 0) await pause();
    const results = await engine.read(ranges.map(sumRange));
    for (const [at, { keyId }] of ranges.entries()) sums.set(keyId, add(sums.get(keyId), results[at]?.[0]));
  }
  return sums;
}

function rangesOf({ keyId, folded, lastNumber }: NumberedLedger): readonly LedgerRange[] {
  const count = Math.ceil((lastNumber - folded) / rowsPerRead);
  return Array.from({ length: count }, (_, index) => {
    const after = folded + index * rowsPerRead;
    return { keyId, after, upTo: Math.min(after + rowsPerRead, lastNumber) };
  });
}

/** Parts ranges into those of one read each. */
function readsOf(ranges: readonly LedgerRange[]): readonly (readonly LedgerRange[])[] {
  const reads: LedgerRange[][] = [];
  let rows = Number.POSITIVE_INFINITY;
  for (const range of ranges) {
    const more = range.upTo - range.after;
    const last = reads.at(-1);
    if (last === undefined || last.length === accountsPerRead || rows + more > rowsPerRead) {
      reads.push([range]);
      rows = more;
    } else {
      last.push(range);
      rows += more;
    }
  }
  return reads;
}

function sumRange({ keyId, after, upTo }: LedgerRange): Statement {
  return {
    sql: `SELECT count(*) AS count, coalesce(sum(delta), 0) AS total,
            coalesce(sum(CASE WHEN kind = 'charge' THEN delta ELSE 0 END), 0) AS charges
          FROM ledger WHERE key_id = ? AND number > ? AND number <= ?`,
    values: [keyId, after, upTo],
  };
}

function add(sum: LedgerSum = noRows, row: Row = {}): LedgerSum {
  return {
    ledgerNanos: sum.ledgerNanos + Number(row['total'] ?? 0),
    chargedNanos: sum.chargedNanos - Number(row['charges'] ?? 0),
    ledgerRows: sum.ledgerRows + Number(row['count'] ?? 0),
  };
}
