import type { ConsumptionRecord } from '../../domain/money/consumption.ts';
import type { NextId } from '../../domain/ports/clock.ts';
import type { RecordPages } from '../../domain/ports/record-pages.ts';
import type { OpenRecords, RecoverableRecords } from '../../domain/ports/records.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { checkWrites } from './check-writes.ts';
import { closeOpen, closeWithoutLease, readClosed, selectClosable } from './close-statements.ts';
import type { Engine } from '../engine.ts';
import type { Owner } from '../leases/lease-store.ts';
import { lookUpRows, readCount } from '../read-rows.ts';
import type { RecordCursor } from './record-pages.ts';
import { readPage, readRecord, selectCursor, selectRecord, selectRecords } from './record-pages.ts';
import { openingOf, readBudgetedReservation, valuesToOpenBudgeted } from './open-budgeted-statement.ts';
import { openRecord, readReservation, valuesToOpen } from './open-statement.ts';
import { countSettlements, readSettlement, settlementFor, valuesToSettle } from './settle-statement.ts';

/** How many records are closed in one unit: each is a value of its statements. */
const closedAtOnce = 500;

/** How many records of a page are read at once: under a millisecond of the thread that serves requests, which come in between. */
const recordsAtOnce = 50;

/** What the records need beside their engine. */
export interface RecordStoreOptions {
  /** Names for postings. */
  readonly nextId: NextId;
  /** The time of day, in milliseconds since 1970. */
  readonly now: () => number;
  readonly report: ReportFault;
  /** The owner of records that are begun; it may change. */
  readonly owner: Owner;
}

/** Stores consumption records, with the holds and charges in them, over any engine. */
export function createRecordStore(
  engine: Engine,
  { nextId, now, report, owner }: RecordStoreOptions,
): RecoverableRecords & OpenRecords {
  return {
    async open(record) {
      const { budgets } = record;
      if (budgets === undefined)
        return readReservation(await engine.call(openRecord, valuesToOpen(record, owner.id)));
      const values = valuesToOpenBudgeted(record, budgets, owner.id);
      return readBudgetedReservation(await engine.call(openingOf(budgets), values));
    },
    async settle(record) {
      const values = valuesToSettle(record, nextId(), now());
      const settled = readSettlement(await engine.call(settlementFor(record), values));
      if (settled === null) throw new Error(`no open record of ${record.requestId}`);
      if (settled.found === 'lost')
        report('a record that was closed as lost was settled late', record.requestId);
      if (settled.found === 'nowhere')
        report('a record was settled whose beginning the database has lost', record.requestId);
      if (settled.unbookedNanos > 0)
        report(
          'a charge was cut: its key has spent as much as can be kept',
          new Error(`${record.requestId}: ${settled.unbookedNanos} nano-USD`),
        );
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
    countOpen: () => readCount(engine, { sql: 'SELECT count(*) AS count FROM open_requests', values: [] }),
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

/** Reads consumption records in pages, beside the units that write them. */
export function createRecordPages(engine: Engine): RecordPages {
  return {
    async listRecords(filter, limit, before) {
      const [row] = before === null ? [] : (await engine.read(selectCursor(before, filter.keyId))).flat();
      if (before !== null && row === undefined) return null;
      let cursor: RecordCursor | null =
        before === null ? null : { createdAtMs: Number(row?.['created_at']), requestId: before };
      const found: ConsumptionRecord[] = [];
      while (found.length <= limit) {
        const wanted = Math.min(limit + 1 - found.length, recordsAtOnce);
        const some = readPage(await engine.read(selectRecords(filter, wanted, cursor)), wanted);
        found.push(...some);
        if (some.length < wanted) break;
        cursor = some.at(-1) ?? cursor;
      }
      const records = found.slice(0, limit);
      return { records, next: found.length > limit ? (records.at(-1)?.requestId ?? null) : null };
    },
    async findRecord(requestId, keyId) {
      const [row] = (await engine.read(selectRecord(requestId, keyId))).flat();
      return row === undefined ? null : readRecord(row);
    },
  };
}
