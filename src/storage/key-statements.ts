import type { ApiKey } from '../domain/api-key.ts';
import type { Limits } from '../domain/limits.ts';
import type { Row, Statement } from './engine.ts';

const selectKey = `SELECT id, name, created_at, concurrency, requests_per_minute, compatibility,
  balance IS NOT NULL AS has_balance FROM api_keys JOIN accounts ON key_id = id`;

/** A key with an account that has no balance yet. */
export function insertKey(
  { id, name, createdAt, limits, compatibility }: ApiKey,
  hash: string,
): readonly Statement[] {
  return [
    {
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
    },
    { sql: 'INSERT INTO accounts (key_id) VALUES (?)', values: [id] },
  ];
}

export function selectKeyByHash(hash: string): Statement {
  return { sql: `${selectKey} WHERE hash = ?`, values: [hash] };
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
  return {
    id: String(row['id']),
    name: String(row['name']),
    createdAt: Number(row['created_at']),
    limits,
    hasBalance: row['has_balance'] === 1,
    compatibility: JSON.parse(String(row['compatibility'])) as ApiKey['compatibility'],
  };
}
