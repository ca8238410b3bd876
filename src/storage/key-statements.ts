import type { ApiKey } from '../domain/api-key.ts';
import type { Limits } from '../domain/limits.ts';
import type { Row, Statement } from './engine.ts';

const columns = `id, name, created_at, concurrency, requests_per_minute, queue_wait_ms, models, expires_at, revoked_at,
  compatibility, balance IS NOT NULL AS has_balance`;
const selectKey = `SELECT ${columns} FROM api_keys JOIN accounts ON accounts.key_id = id`;

/** A key with an account that has no balance yet. */
export function insertKey(key: ApiKey, hash: string): readonly Statement[] {
  return [
    {
      sql: `INSERT INTO api_keys (id, hash, created_at, name, concurrency, requests_per_minute, queue_wait_ms, models,
              expires_at, compatibility)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      values: [key.id, hash, key.createdAt, ...settingsOf(key)],
    },
    { sql: 'INSERT INTO accounts (key_id) VALUES (?)', values: [key.id] },
  ];
}

export function updateKey(key: ApiKey): Statement {
  return {
    sql: `UPDATE api_keys SET name = ?, concurrency = ?, requests_per_minute = ?, queue_wait_ms = ?, models = ?,
            expires_at = ?, compatibility = ? WHERE id = ?`,
    values: [...settingsOf(key), key.id],
  };
}

/** Takes a key back. One that was taken back before keeps its time. */
export function revokeKey(id: string, now: number): Statement {
  return { sql: 'UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?', values: [now, id] };
}

/** Gives a key a new secret; the one before stays valid until a time. */
export function rotateKey(id: string, hash: string, oldValidUntil: number): readonly Statement[] {
  return [
    {
      sql: 'INSERT INTO old_secrets (hash, key_id, valid_until) SELECT hash, id, ? FROM api_keys WHERE id = ?',
      values: [oldValidUntil, id],
    },
    { sql: 'UPDATE api_keys SET hash = ? WHERE id = ?', values: [hash, id] },
  ];
}

/** A key by the hash of its secret, or of one that it had before and that is still valid: it expires with that one. */
export function selectKeyByHash(hash: string, now: number): Statement {
  return {
    sql: `SELECT ${columns}, NULL AS valid_until FROM api_keys JOIN accounts ON accounts.key_id = id WHERE hash = ?
          UNION ALL
          SELECT ${columns}, valid_until FROM old_secrets JOIN api_keys ON id = old_secrets.key_id
            JOIN accounts ON accounts.key_id = id WHERE old_secrets.hash = ? AND valid_until > ?`,
    values: [hash, hash, now],
  };
}

export function selectKeyById(id: string): Statement {
  return { sql: `${selectKey} WHERE id = ?`, values: [id] };
}

/** A page starts behind the key named by the cursor, by time of creation and then by id. */
export function selectKeys(limit: number, before: string | null): Statement {
  const page = 'ORDER BY created_at DESC, id DESC LIMIT ?';
  if (before === null) return { sql: `${selectKey} ${page}`, values: [limit] };
  return {
    sql: `${selectKey} WHERE (created_at, id) < (SELECT created_at, id FROM api_keys WHERE id = ?) ${page}`,
    values: [before, limit],
  };
}

export function readKey(row: Row): ApiKey {
  const limits: { -readonly [Name in keyof Limits]?: number } = {};
  if (row['concurrency'] !== null) limits.concurrency = Number(row['concurrency']);
  if (row['requests_per_minute'] !== null) limits.requestsPerMinute = Number(row['requests_per_minute']);
  if (row['queue_wait_ms'] !== null) limits.queueWaitMs = Number(row['queue_wait_ms']);
  const ends = [row['expires_at'], row['valid_until']].filter((time) => typeof time === 'number');
  return {
    id: String(row['id']),
    name: String(row['name']),
    createdAt: Number(row['created_at']),
    limits,
    models: row['models'] === null ? null : (JSON.parse(String(row['models'])) as string[]),
    expiresAt: ends.length === 0 ? null : Math.min(...ends),
    revokedAt: row['revoked_at'] === null ? null : Number(row['revoked_at']),
    hasBalance: row['has_balance'] === 1,
    compatibility: JSON.parse(String(row['compatibility'])) as ApiKey['compatibility'],
  };
}

/** The values of what can be changed, in the order of the columns above. */
function settingsOf({ name, limits, models, expiresAt, compatibility }: ApiKey): Statement['values'] {
  return [
    name,
    limits.concurrency ?? null,
    limits.requestsPerMinute ?? null,
    limits.queueWaitMs ?? null,
    models === null ? null : JSON.stringify(models),
    expiresAt,
    JSON.stringify(compatibility),
  ];
}
