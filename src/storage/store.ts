import { openingReference } from '../domain/account.ts';
import type { Account, BookedCredit, Credit } from '../domain/account.ts';
import type { ApiKey, KeyChanges } from '../domain/api-key.ts';
import type { ConsumptionRecord, RecordFilter, RecordPage } from '../domain/consumption.ts';
import type { NextId } from '../domain/ports/clock.ts';
import type { RecoverableRecords } from '../domain/ports/records.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import type { KeyPage } from '../operations/manage-keys.ts';
import { bookCredit, selectAccounts } from './account-statements.ts';
import type { Engine, Row, Statement } from './engine.ts';
import {
  insertKey,
  readKey,
  revokeKey,
  rotateKey,
  selectKeyByHash,
  selectKeyById,
  selectKeys,
  updateKey,
} from './key-statements.ts';
import { readRecord, selectCursor, selectRecord, selectRecords } from './record-pages.ts';
import { closeLostRecords, openRecord, readReservation, settleRecord } from './record-statements.ts';

/** Everything the service keeps, over any engine. */
export interface Store extends RecoverableRecords {
  /** Keeps a key, with an opening balance in nano-USD or with none at all. */
  createKey(key: ApiKey, hash: string, balanceNanos: number | null): Promise<void>;
  /** A key by the hash of a secret that is valid now. */
  findKeyByHash(hash: string): Promise<ApiKey | null>;
  findKeyById(id: string): Promise<ApiKey | null>;
  /** The keys behind the one that `before` names, newest first; `null` when it names none. */
  listKeys(limit: number, before: string | null): Promise<KeyPage | null>;
  /** Changes the named settings alone; resolves with the key as it is then, `null` when there is none. */
  updateKey(id: string, changes: KeyChanges): Promise<ApiKey | null>;
  revokeKey(id: string, now: number): Promise<void>;
  rotateKey(id: string, hash: string, oldValidUntil: number): Promise<void>;
  countKeys(): Promise<number>;
  credit(credit: Credit): Promise<BookedCredit>;
  /** The accounts of some keys, by the keys' ids. */
  accounts(keyIds: readonly string[]): Promise<ReadonlyMap<string, Account>>;
  /** The records behind the one that `before` names, newest first; `null` when it names none (of the filter's key). */
  listRecords(filter: RecordFilter, limit: number, before: string | null): Promise<RecordPage | null>;
  findRecord(requestId: string, keyId: string): Promise<ConsumptionRecord | null>;
  /** The ids of open records that were begun before a time. */
  listOpen(before: number): Promise<readonly string[]>;
  countOpen(): Promise<number>;
  /** Keys in use at a time with a balance under so many nano-USD. */
  countLowBalances(belowNanos: number, at: number): Promise<number>;
}

/** What the store needs beside its engine: names for postings, the time of day in milliseconds, and the log. */
export interface StoreTools {
  readonly nextId: NextId;
  readonly now: () => number;
  readonly report: ReportFault;
}

/**
 * The statements, written once for every engine: as units that are whole or not at all, and as reads that no unit has to
 * wait for. A read sees every unit that was committed before it began, and can end after a later one.
 */
export function createStore(engine: Engine, { nextId, now, report }: StoreTools): Store {
  const rows = async (statement: Statement): Promise<readonly Row[]> =>
    (await engine.read([statement]))[0] ?? [];
  const count = async (sql: string, values: Statement['values'] = []): Promise<number> =>
    Number((await rows({ sql, values }))[0]?.['count'] ?? 0);
  return {
    async createKey(key, hash, nanos) {
      const opening = { keyId: key.id, reference: openingReference };
      const credit = nanos === null ? [] : bookCredit({ ...opening, nanos }, nextId(), key.createdAtMs);
      await engine.run([...insertKey(key, hash), ...credit]);
    },
    async findKeyByHash(hash) {
      const [row] = await rows(selectKeyByHash(hash, now()));
      return row === undefined ? null : readKey(row);
    },
    async findKeyById(id) {
      const [row] = await rows(selectKeyById(id));
      return row === undefined ? null : readKey(row);
    },
    async updateKey(id, changes) {
      const [row] = (await engine.run(updateKey(id, changes))).at(-1) ?? [];
      return row === undefined ? null : readKey(row);
    },
    async revokeKey(id, revokedAt) {
      await engine.run([revokeKey(id, revokedAt)]);
    },
    async rotateKey(id, hash, oldValidUntil) {
      await engine.run(rotateKey(id, hash, oldValidUntil));
    },
    async listKeys(limit, before) {
      const [cursor] = before === null ? [] : await rows(selectKeyById(before));
      if (before !== null && cursor === undefined) return null;
      const found = await rows(selectKeys(limit + 1, cursor === undefined ? null : readKey(cursor)));
      const keys = found.slice(0, limit).map(readKey);
      return { keys, next: found.length > limit ? (keys.at(-1)?.id ?? null) : null };
    },
    countKeys: () => count('SELECT count(*) AS count FROM api_keys'),
    countOpen: () => count('SELECT count(*) AS count FROM records WHERE outcome IS NULL'),
    countLowBalances: (belowNanos, at) =>
      count(
        `SELECT count(*) AS count FROM accounts JOIN api_keys ON id = key_id
         WHERE balance < ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`,
        [belowNanos, at],
      ),
    async credit(credit) {
      const posting = nextId();
      const [, , , [booked] = []] = await engine.run(bookCredit(credit, posting, now()));
      if (booked === undefined) {
        const [found] = await rows(selectAccounts([credit.keyId]));
        if (found === undefined) return { result: 'no such key', account: null };
        return { result: 'too much', account: readAccount(found) };
      }
      const account = readAccount(booked);
      if (booked['posting'] === posting) return { result: 'booked', account };
      return { result: booked['delta'] === credit.nanos ? 'booked before' : 'other amount', account };
    },
    async accounts(keyIds) {
      const found = await rows(selectAccounts(keyIds));
      return new Map(found.map((row) => [String(row['key_id']), readAccount(row)]));
    },
    async listRecords(filter, limit, before) {
      const [row] = before === null ? [] : await rows(selectCursor(before, filter.keyId));
      if (before !== null && row === undefined) return null;
      const cursor = before === null ? null : { createdAt: Number(row?.['created_at']), requestId: before };
      const found = await rows(selectRecords(filter, limit + 1, cursor));
      const records = found.slice(0, limit).map(readRecord);
      return { records, next: found.length > limit ? (records.at(-1)?.requestId ?? null) : null };
    },
    async findRecord(requestId, keyId) {
      const [row] = await rows(selectRecord(requestId, keyId));
      return row === undefined ? null : readRecord(row);
    },
    async listOpen(before) {
      // By their openness alone, which has an index of its own: by time all records ever would be looked at.
      // In line with the settlements: a read beside them could still find open what was settled and forgotten meanwhile.
      const sql = 'SELECT request_id, created_at FROM records WHERE outcome IS NULL';
      const [open = []] = await engine.run([{ sql, values: [] }]);
      return open.filter((row) => Number(row['created_at']) < before).map((row) => String(row['request_id']));
    },
    async open(record) {
      return readReservation(await engine.run(openRecord(record)));
    },
    async settle(record) {
      const [settled = []] = await engine.run(settleRecord(record, nextId(), now()));
      if (settled.length === 0) throw new Error(`no open record of ${record.requestId}`);
      const unbookedNanos = Number(settled[0]?.['unbooked']);
      if (unbookedNanos > 0)
        report(
          'a charge was cut: its key has spent as much as can be kept',
          new Error(`${record.requestId}: ${unbookedNanos} nano-USD`),
        );
    },
    async isSettled({ requestId, outcome, chargeNanos }) {
      const made = await count(
        'SELECT count(*) AS count FROM records WHERE request_id = ? AND outcome = ? AND charge + unbooked = ?',
        [requestId, outcome, chargeNanos],
      );
      return made > 0;
    },
    async checkWrites() {
      await engine.run(checkWrites);
    },
    async closeLostRecords() {
      const [, lost = []] = await engine.run(closeLostRecords);
      return lost.length;
    },
  };
}

/** A row that is gone when the unit is committed: an UPDATE to the same value would write nothing to the disk. */
const checkWrites: readonly Statement[] = [
  { sql: `INSERT INTO migrations (number, name, checksum) VALUES (0, 'write check', '')`, values: [] },
  { sql: 'DELETE FROM migrations WHERE number = 0', values: [] },
];

function readAccount(row: Row): Account {
  return {
    balanceNanos: row['balance'] === null ? null : Number(row['balance']),
    heldNanos: Number(row['held']),
    spentNanos: Number(row['spent']),
  };
}
