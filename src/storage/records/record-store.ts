import { budgetOwners } from '../../domain/budgets/budget.ts';
import type { BudgetOwner } from '../../domain/budgets/budget.ts';
import type { OpenedRecord, SettledRecord } from '../../domain/money/consumption.ts';
import type { OpenRecords, OrderedRecords } from '../../domain/ports/records.ts';
import { ClaimLostError } from '../../domain/ports/claims.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { freeClaims, isRunningClaim, lockClaimed } from '../claims.ts';
import type { Engine, ResultRow, Row, Statement } from '../engine.ts';
import { checkWrites } from '../fixed-units.ts';
import { hasNoLease } from '../leases.ts';
import type { Owner } from '../leases.ts';
import { lookUpRows, raw, readCount, sql } from '../statements.ts';
import { budgetColumns, openingOf, readOpening } from './open-record.ts';
import type { UnitCall } from './open-record.ts';
import { createKindNumbers } from './kind-numbers.ts';
import type { KindNumbers } from './kind-numbers.ts';
import { openKind, settledKind } from './record-kinds.ts';
import type { Kind } from './record-kinds.ts';
import { isOneOf, requestKeyOf } from './request-key.ts';
import { countSettlements, readSettlement, settlementFor, valuesToSettle } from './settle-record.ts';
import type { Settled } from './settle-record.ts';
import { describedAttempt } from './stored-attempts.ts';

/** How many records are closed in one unit: each is a value of its statements. */
const closedAtOnce = 500;

/** What the records need beside their engine. */
export interface RecordStoreOptions {
  /** The time of day, in milliseconds since 1970. */
  readonly now: () => number;
  readonly report: ReportFault;
  /** The owner of records that are begun; it may change. */
  readonly owner: Owner;
  /**
   * Called with the key of a settlement before it resolves, where it gave back another hold than that of its record, or charged
   * another amount.
   */
  readonly onUnusual?: (keyId: string) => void;
  /** Called before a settlement resolves that has freed the slot of its request. */
  readonly onSlotFreed?: (record: SettledRecord) => void;
}

/** Records that are begun by another call than one of their own. */
export interface BegunRecords {
  /** How a record is begun; `null` where the database has to be asked first what it knows of records of this kind. */
  readonly openingOf: (record: OpenedRecord) => UnitCall | null;
}

/** Stores consumption records, with the holds and charges in them, over any engine. */
export function createRecordStore(
  engine: Engine,
  { now, report, owner, onUnusual = () => {}, onSlotFreed = () => {} }: RecordStoreOptions,
): OrderedRecords & OpenRecords & BegunRecords {
  const kinds = createKindNumbers(engine);
  const write = writerOf(engine, kinds);
  const settle = (record: SettledRecord, handingIn: () => boolean): Promise<ResultRow> => {
    const described = describedAttempt(record);
    const settledAtMs = now();
    let isUnwritten = false;
    const unit = settlementFor(record);
    const callOf = (kind: number) => ({
      unit,
      values: valuesToSettle({ ...record, kind, settledAtMs, described, isUnwritten }),
    });
    return write(settledKind(record, described?.model ?? ''), callOf, () => (isUnwritten = handingIn()));
  };
  return {
    isKnownKind: (record) => kinds.find(openKind(record)) !== undefined,
    openingOf(record) {
      const kind = kinds.find(openKind(record));
      return kind === undefined ? null : openingOf(record, kind, owner.id);
    },
    async open(record, handingIn = () => {}) {
      const callOf = (kind: number) => openingOf(record, kind, owner.id);
      return readOpening(record, await write(openKind(record), callOf, handingIn));
    },
    async settle(record, handingIn = () => false) {
      const settled = readSettlement(await settle(record, handingIn));
      if (settled === null && record.claim !== undefined) throw new ClaimLostError(record.requestId);
      if (settled === null) throw new Error(`no open record of ${record.requestId}`);
      const isUsual = settled.found === 'open' && settled.unbookedNanos === 0;
      if (!isUsual) onUnusual(record.begun.keyId);
      if (!isUsual) reportUnusual(record.requestId, settled, report);
      if (settled.hasFreedSlot) onSlotFreed(record);
      return settled.unbookedNanos;
    },
    async isSettled(record) {
      const [row] = await lookUpRows(engine, countSettlements(record));
      return Number(row?.['count']) > 0;
    },
    async checkWrites() {
      await engine.call(checkWrites, []);
    },
    async closeLostRecords() {
      return readClosed(await engine.run(closeWithoutLease()));
    },
    countOpen: () => readCount(engine, sql`SELECT count(*) AS count FROM open_rows`),
    async listClosable(ownBeforeMs, ownAfterMs) {
      // A unit, in line with the settlements: a read beside them could still find open what was settled meanwhile.
      const [open = []] = await engine.run([selectClosable(owner.id, ownBeforeMs, ownAfterMs)]);
      return open.map((row) => String(row['request_id']));
    },
    async closeAsLost(requestIds) {
      let count = 0;
      for (let at = 0; at < requestIds.length; at += closedAtOnce) {
        const some = requestIds.slice(at, at + closedAtOnce);
        count += readClosed(await engine.run(closeOpen(some, owner.id)));
      }
      return count;
    },
  };
}

/**
 * Returns a function that runs a unit that writes a record of a kind. A database that was restored may lack the kind: it is named
 * again then, once.
 */
function writerOf(engine: Engine, kinds: KindNumbers) {
  return async (
    kind: Kind,
    callOf: (kind: number) => UnitCall,
    handingIn: () => void,
  ): Promise<ResultRow> => {
    const call = (number: number): Promise<ResultRow> => {
      const { unit, values } = callOf(number);
      return engine.call(unit, values);
    };
    const number = kinds.find(kind) ?? (await kinds.ask(kind));
    handingIn();
    return (await call(number)) ?? call(await kinds.ask(kind));
  };
}

/** Reports a settlement that found no open record, or could not charge all. */
function reportUnusual(requestId: string, { found, unbookedNanos }: Settled, report: ReportFault): void {
  if (found === 'lost') report('a record that was closed as lost was settled late', requestId);
  if (found === 'nowhere') report('a record was settled whose beginning the database has lost', requestId);
  if (unbookedNanos > 0)
    report(
      'a charge was cut: its key has spent as much as can be kept',
      new Error(`${requestId}: ${unbookedNanos} nano-USD`),
    );
}

/**
 * The open requests that one owner may close, and those whose claims it may free: those of others without a lease, and its own
 * that were begun before a time or after another one, whether it has its lease or not.
 */
function selectClosable(owner: string, ownBeforeMs: number, ownAfterMs: number): Statement {
  const mayBeClosed = sql`(owner = ${owner} AND (created_at < ${ownBeforeMs} OR created_at > ${ownAfterMs}))
      OR (owner <> ${owner} AND ${raw(hasNoLease)})`;
  return sql`SELECT request_id FROM open_requests WHERE ${mayBeClosed}
    UNION ALL SELECT request_id FROM claims WHERE ${raw(isRunningClaim)} AND (${mayBeClosed})`;
}

/** Closes as lost the open requests whose owners have no lease. */
function closeWithoutLease(): readonly Statement[] {
  return closeAsLost(raw(hasNoLease));
}

/** Closes as lost those of some requests that are open and that one owner may close. */
function closeOpen(requestIds: readonly string[], owner: string): readonly Statement[] {
  // Asked again, because an owner may have renewed its lease since its requests were listed.
  return closeAsLost(
    sql`(owner = ${owner} OR ${raw(hasNoLease)}) AND ${isOneOf(requestIds.map(requestKeyOf))}`,
  );
}

/** The owner of the requests that a unit is closing: no process has such an id. */
const closing = raw(`'closing'`);

/** What a record keeps of its open request: its kind, which says nothing of an end, is that of a lost one. */
const kept = raw(
  `created_at, tail, account, kind, queued_ms, hold, budget, budget_period, budget_hold, group_budget, group_period`,
);

/**
 * Closes open requests under a condition: their holds go back, and nothing is charged. Their records are not settled, so that a
 * true settlement may still overtake the closing, unless it has a claim, which is free then. The accounts are locked first, like
 * that of every money unit. Then the requests are marked: what the condition finds may become another set while the unit runs,
 * where others run beside it. One that is marked without a lock of its account may meet its own settlement in a deadlock, which
 * undoes one of the two.
 */
function closeAsLost(condition: Statement): readonly Statement[] {
  return [
    sql`UPDATE accounts SET held = held WHERE number IN (SELECT account FROM open_rows WHERE ${condition})`,
    lockClaimed(condition),
    sql`UPDATE open_rows SET owner = ${closing} WHERE ${condition}`,
    sql`UPDATE accounts SET held = accounts.held - closed.hold, balance = accounts.balance + closed.hold,
        last_request = NULL, last_hold = NULL
      FROM (SELECT account, sum(hold) AS hold FROM open_rows WHERE owner = ${closing} GROUP BY account) AS closed
      WHERE accounts.number = closed.account`,
    // A settlement that overtook the beginning has written the record already.
    sql`INSERT INTO record_rows (${kept}) SELECT ${kept} FROM open_rows WHERE owner = ${closing} ON CONFLICT DO NOTHING`,
    ...budgetOwners.map(giveBackIn),
    freeClaims(condition),
    sql`DELETE FROM open_rows WHERE owner = ${closing} RETURNING created_at`,
  ];
}

/**
 * Gives back what the requests hold in the budgets of their keys or groups: behind their records, since a settlement, too,
 * writes its record first, and sums of a day that several keys share may be changed with that.
 */
function giveBackIn(owner: BudgetOwner): Statement {
  const { id, period } = budgetColumns[owner];
  return sql`UPDATE budgets SET held = budgets.held - closed.hold
    FROM (SELECT ${raw(id)} AS id, ${raw(period)} AS period, sum(budget_hold) AS hold FROM open_rows
      WHERE owner = ${closing} AND ${raw(id)} IS NOT NULL GROUP BY ${raw(id)}, ${raw(period)}) AS closed
    WHERE budgets.id = closed.id AND budgets.period_start = closed.period`;
}

/** The number of requests that a closing unit closed. */
function readClosed(results: readonly (readonly Row[])[]): number {
  return results.at(-1)?.length ?? 0;
}
