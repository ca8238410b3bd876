import { openingReference } from '../domain/account.ts';
import type { Account, BookedCredit, Credit } from '../domain/account.ts';
import type { ApiKey } from '../domain/api-key.ts';
import type { ConsumptionRecord, RecordFilter, RecordPage } from '../domain/consumption.ts';
import type { NextId, Records } from '../domain/ports.ts';
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
import { readRecord, selectRecord, selectRecords } from './record-pages.ts';
import { closeLostRecords, openRecord, readReservation, settleRecord } from './record-statements.ts';

/** Everything the service keeps, over any engine. */
export interface Store extends Records {
  /** Keeps a key, with an opening balance in nano-USD or with none at all. */
  createKey(key: ApiKey, hash: string, balanceNanos: number | null): Promise<void>;
  /** A key by the hash of a secret that is valid now. */
  findKeyByHash(hash: string): Promise<ApiKey | null>;
  findKeyById(id: string): Promise<ApiKey | null>;
  listKeys(limit: number, before: string | null): Promise<KeyPage>;
  updateKey(key: ApiKey): Promise<void>;
  revokeKey(id: string, now: number): Promise<void>;
  rotateKey(id: string, hash: string, oldValidUntil: number): Promise<void>;
  countKeys(): Promise<number>;
  credit(credit: Credit): Promise<BookedCredit>;
  /** The accounts of some keys, by the keys' ids. */
  accounts(keyIds: readonly string[]): Promise<ReadonlyMap<string, Account>>;
  listRecords(filter: RecordFilter, limit: number, before: string | null): Promise<RecordPage>;
  findRecord(requestId: string, keyId: string): Promise<ConsumptionRecord | null>;
  /** The ids of open records that were begun before a time. */
  listOpen(before: number): Promise<readonly string[]>;
  countOpen(): Promise<number>;
  /** Keys in use at a time with a balance under so many nano-USD. */
  countLowBalances(belowNanos: number, at: number): Promise<number>;
  /** Ends the records that a process which died left open; returns how many there were. */
  closeLostRecords(): Promise<number>;
}

/** What the store needs beside its engine: names for postings, and the time of day in milliseconds. */
export interface StoreTools {
  readonly nextId: NextId;
  readonly now: () => number;
}

/** The statements, written once for every engine, as units that are whole or not at all. */
export function createStore(engine: Engine, { nextId, now }: StoreTools): Store {
  const rows = async (statement: Statement): Promise<readonly Row[]> =>
    (await engine.run([statement]))[0] ?? [];
  const count = async (sql: string, values: Statement['values'] = []): Promise<number> =>
    Number((await rows({ sql, values }))[0]?.['count'] ?? 0);
  return {
    async createKey(key, hash, nanos) {
      const opening = { keyId: key.id, reference: openingReference };
      const credit = nanos === null ? [] : bookCredit({ ...opening, nanos }, nextId(), key.createdAt);
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
    async updateKey(key) {
      await rows(updateKey(key));
    },
    async revokeKey(id, revokedAt) {
      await rows(revokeKey(id, revokedAt));
    },
    async rotateKey(id, hash, oldValidUntil) {
      await engine.run(rotateKey(id, hash, oldValidUntil));
    },
    async listKeys(limit, before) {
      const found = await rows(selectKeys(limit + 1, before));
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
      const found = await rows(selectRecords(filter, limit + 1, before));
      const records = found.slice(0, limit).map(readRecord);
      return { records, next: found.length > limit ? (records.at(-1)?.requestId ?? null) : null };
    },
    async findRecord(requestId, keyId) {
      const [row] = await rows(selectRecord(requestId, keyId));
      return row === undefined ? null : readRecord(row);
    },
    async listOpen(before) {
      // By their openness alone, which has an index of its own: by time all records ever would be looked at.
      const open = await rows({
        sql: 'SELECT request_id, created_at FROM records WHERE outcome IS NULL',
        values: [],
      });
      return open.filter((row) => Number(row['created_at']) < before).map((row) => String(row['request_id']));
    },
    async open(record) {
      return readReservation(await engine.run(openRecord(record)));
    },
    async settle(record) {
      const [settled = []] = await engine.run(settleRecord(record, nextId(), now()));
      if (settled.length === 0) throw new Error(`no open record of ${record.requestId}`);
    },
    async closeLostRecords() {
      const [, lost = []] = await engine.run(closeLostRecords);
      return lost.length;
    },
  };
}

function readAccount(row: Row): Account {
  return {
    balanceNanos: row['balance'] === null ? null : Number(row['balance']),
    heldNanos: Number(row['held']),
    spentNanos: Number(row['spent']),
  };
}
