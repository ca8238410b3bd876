import { readPages } from '../../domain/pause.ts';
import type { Pause } from '../../domain/pause.ts';
import type { AuditedBudget, AuditedSpending } from '../../domain/ports/ledger-audit.ts';
import type { Engine, Row, SqlValue, Statement } from '../engine.ts';
import { columnsOfBudget } from '../records/open-record.ts';
import { selectRemovedBefore } from '../records/record-pages.ts';
import { isBehind, requestKeyOf } from '../records/request-key.ts';
import type { RequestKey } from '../records/request-key.ts';
import { raw, readRows, sql } from '../statements.ts';
import { readPeriod, selectBudgets } from './accounts.ts';

/** How many budgets are read at once, and of how many records of each the charges are added up: it takes a few milliseconds. */
const budgetsPerRead = 20;
const recordsPerRead = 200;

/**
 * How long before a period a request may have arrived that counts in it, since it waited, in milliseconds. Once records of that
 * time are removed, those that are left add up to less.
 */
const longestWaitMs = 86_400_000;

const budgetHolds: Statement = sql`SELECT budget, budget_period, group_budget, group_period, budget_hold FROM open_rows
  WHERE budget IS NOT NULL OR group_budget IS NOT NULL`;

/** Reads all budgets with the holds of their open requests, a page at a time. */
export function auditBudgets(
  engine: Pick<Engine, 'read'>,
  pause: Pause,
): AsyncIterable<readonly AuditedBudget[]> {
  const next = async (last: AuditedBudget | null): Promise<readonly AuditedBudget[]> => {
    const [open = [], rows = []] = await engine.read([budgetHolds, selectBudgetsAfter(last?.id ?? '')]);
    return rows.map((row) => {
      const { heldNanos, startMs } = readPeriod(row);
      const id = String(row['id']);
      const columns = columnsOfBudget(id);
      const isIn = (request: Row): boolean =>
        request[columns.id] === id && Number(request[columns.period]) === startMs;
      const openHoldNanos = open.filter(isIn).reduce((sum, hold) => sum + Number(hold['budget_hold']), 0);
      return { id, heldNanos, openHoldNanos };
    });
  };
  return readPages(next, budgetsPerRead, pause);
}

/** A budget of which the records of the current period are added up. */
interface Counted {
  readonly id: string;
  readonly startMs: number;
  readonly spentNanos: number;
  chargedNanos: number;
  /** The last record that was added; `null` before the first one. */
  last: RequestKey | null;
  isDone: boolean;
}

/**
 * Adds up the charges of the records of each budget's current period, a page of budgets at a time. Requests may end
 * meanwhile: what they were charged may or may not be in the sum, which is therefore between what was spent before and after.
 */
export async function* auditSpending(
  engine: Pick<Engine, 'read'>,
  pause: Pause,
): AsyncIterable<readonly AuditedSpending[]> {
  const next = (last: Row | null) => readRows(engine, selectBudgetsAfter(last?.['id'] ?? ''));
  for await (const rows of readPages(next, budgetsPerRead, pause)) {
    const counted = rows.map((row): Counted => {
      const { startMs, spentNanos } = readPeriod(row);
      return { id: String(row['id']), startMs, spentNanos, chargedNanos: 0, last: null, isDone: false };
    });
    await addUp(engine, counted, pause);
    yield await compare(engine, counted);
  }
}

async function addUp(engine: Pick<Engine, 'read'>, counted: readonly Counted[], pause: Pause): Promise<void> {
  for (;;) {
    const left = counted.filter(({ isDone }) => !isDone);
    if (left.length === 0) return;
    const results = await engine.read(left.map(selectCharges));
    for (const [at, budget] of left.entries()) {
      const rows = results[at] ?? [];
      for (const row of rows) budget.chargedNanos += Number(row['charge']);
      budget.isDone = rows.length < recordsPerRead;
      if (!budget.isDone) budget.last = requestKeyOf(String(rows.at(-1)?.['request_id']));
    }
    await pause();
  }
}

/** The sums of those budgets whose period is still the same. */
async function compare(
  engine: Pick<Engine, 'read'>,
  counted: readonly Counted[],
): Promise<readonly AuditedSpending[]> {
  const [removed = [], rows = []] = await engine.read([
    selectRemovedBefore,
    selectBudgets(counted.map(({ id }) => id)),
  ]);
  const removedBeforeMs = Number(removed[0]?.['removed_before'] ?? Number.NEGATIVE_INFINITY);
  const now = new Map(rows.map((row) => [String(row['id']), readPeriod(row)]));
  return counted.flatMap(({ id, startMs, spentNanos, chargedNanos }) => {
    const after = now.get(id);
    if (after?.startMs !== startMs) return [];
    const spentBeforeNanos = removedBeforeMs > startMs - longestWaitMs ? 0 : spentNanos;
    return [{ id, chargedNanos, spentBeforeNanos, spentAfterNanos: after.spentNanos }];
  });
}

function selectBudgetsAfter(id: SqlValue): Statement {
  return sql`SELECT id, period_start, period_end, spent, held, level FROM budgets WHERE id > ${id} ORDER BY id LIMIT ${budgetsPerRead}`;
}

function selectCharges({ id, startMs, last }: Counted): Statement {
  const columns = columnsOfBudget(id);
  const behind = last === null ? raw('') : sql`AND ${isBehind(last)}`;
  return sql`SELECT request_id, charge FROM records WHERE ${raw(columns.id)} = ${id}
    AND ${raw(columns.period)} = ${startMs} ${behind} ORDER BY created_at, tail LIMIT ${recordsPerRead}`;
}
