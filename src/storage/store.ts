import type { ApiKey } from '../domain/api-key.ts';
import type { OpenedRecord, SettledRecord } from '../domain/consumption.ts';
import type { Limits } from '../domain/limits.ts';
import type { Records } from '../domain/ports.ts';
import type { Engine, Row, Statement } from './engine.ts';

/** A page of keys, newest first; `next` is the cursor of the following page. */
interface KeyPage {
  readonly keys: readonly ApiKey[];
  readonly next: string | null;
}

/** Everything the service keeps, over any engine. */
export interface Store extends Records {
  createKey(key: ApiKey, hash: string): Promise<void>;
  findKeyByHash(hash: string): Promise<ApiKey | null>;
  listKeys(limit: number, before: string | null): Promise<KeyPage>;
  countKeys(): Promise<number>;
  /** Ends the records that a process which died left open; returns how many there were. */
  closeLostRecords(): Promise<number>;
}

/** The statements, written once for every engine. */
export function createStore(engine: Engine): Store {
  const rows = async (statement: Statement): Promise<readonly Row[]> =>
    (await engine.run([statement]))[0] ?? [];
  return {
    async createKey(key, hash) {
      await rows(insertKey(key, hash));
    },
    async findKeyByHash(hash) {
      const [row] = await rows({ sql: `${selectKey} WHERE hash = ?`, values: [hash] });
      return row === undefined ? null : readKey(row);
    },
    async listKeys(limit, before) {
      const found = await rows(selectKeys(limit + 1, before));
      const keys = found.slice(0, limit).map(readKey);
      return { keys, next: found.length > limit ? (keys.at(-1)?.id ?? null) : null };
    },
    async countKeys() {
      const [row] = await rows({ sql: 'SELECT count(*) AS count FROM api_keys', values: [] });
      return Number(row?.['count'] ?? 0);
    },
    async open(record) {
      await rows(insertRecord(record));
    },
    async settle(record) {
      const settled = await rows(settleRecord(record));
      if (settled.length === 0) throw new Error(`no open record of ${record.requestId}`);
    },
    async closeLostRecords() {
      const lost = await rows({
        sql: `UPDATE records SET outcome = 'lost', usage_source = 'none' WHERE outcome IS NULL RETURNING request_id`,
        values: [],
      });
      return lost.length;
    },
  };
}

const selectKey =
  'SELECT id, name, created_at, concurrency, requests_per_minute, compatibility FROM api_keys';

function insertKey({ id, name, createdAt, limits, compatibility }: ApiKey, hash: string): Statement {
  return {
    sql: `INSERT INTO api_keys (id, hash, name, created_at, concurrency, requests_per_minute, compatibility)
          VALUES (?, ?, ?, ?, ?, ?, ?)`,
    values: [
      id,
      hash,
      name,
      createdAt,
      limits.concurrency ?? null,
      limits.requestsPerMinute ?? null,
      JSON.stringify(compatibility),
    ],
  };
}

/** A page starts behind the key named by the cursor, by time of creation and then by id. */
function selectKeys(limit: number, before: string | null): Statement {
  const page = 'ORDER BY created_at DESC, id DESC LIMIT ?';
  if (before === null) return { sql: `${selectKey} ${page}`, values: [limit] };
  return {
    sql: `${selectKey} WHERE (created_at, id) < (SELECT created_at, id FROM api_keys WHERE id = ?) ${page}`,
    values: [before, limit],
  };
}

function readKey(row: Row): ApiKey {
  const limits: { -readonly [Name in keyof Limits]?: number } = {};
  if (row['concurrency'] !== null) limits.concurrency = Number(row['concurrency']);
  if (row['requests_per_minute'] !== null) limits.requestsPerMinute = Number(row['requests_per_minute']);
  return {
    id: String(row['id']),
    name: String(row['name']),
    createdAt: Number(row['created_at']),
    limits,
    compatibility: JSON.parse(String(row['compatibility'])) as ApiKey['compatibility'],
  };
}

function insertRecord(record: OpenedRecord): Statement {
  return {
    sql: `INSERT INTO records (request_id, key_id, created_at, protocol, mode, model, upstream, queued_ms)
          VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    values: [
      record.requestId,
      record.keyId,
      record.createdAt,
      record.protocol,
      record.mode,
      record.model,
      record.upstream,
      Math.round(record.queuedMs),
    ],
  };
}

/** Only an open record is settled, so that a second settlement changes nothing. */
function settleRecord({ usage, ...record }: SettledRecord): Statement {
  return {
    sql: `UPDATE records SET outcome = ?, status = ?, input_tokens = ?, cached_input_tokens = ?,
            output_tokens = ?, reasoning_tokens = ?, usage_source = ?, first_byte_ms = ?, total_ms = ?
          WHERE request_id = ? AND outcome IS NULL RETURNING request_id`,
    values: [
      record.outcome,
      record.status,
      usage?.inputTokens ?? null,
      usage?.cachedInputTokens ?? null,
      usage?.outputTokens ?? null,
      usage?.reasoningTokens ?? null,
      record.usageSource,
      record.firstByteMs === null ? null : Math.round(record.firstByteMs),
      Math.round(record.totalMs),
      record.requestId,
    ],
  };
}
