import { defaultWeight } from '../../domain/keys/api-key.ts';
import type { ApiKey, KeyChanges } from '../../domain/keys/api-key.ts';
import type { DeclaredKey } from '../../domain/keys/declared-key.ts';
import type { Limits } from '../../domain/limits/limits.ts';
import { placesOf } from '../engine.ts';
import { changeBudget, readBudget, writeBudget } from './stored-budget.ts';
import type { Row, Statement } from '../engine.ts';

/** The columns that `readKey` reads. */
export const columns = `id, name, created_at, concurrency, requests_per_minute, queue_wait_ms, tokens_per_minute, tokens_per_day,
  models, allow_from, tags, expires_at, low_balance, revoked_at, compatibility, budget, group_name, weight, declared, balance IS NOT NULL AS has_balance`;
/** Reads whole keys. */
export const selectKey = `SELECT ${columns} FROM api_keys JOIN accounts ON accounts.key_id = id`;

const intoKeys = `INSERT INTO api_keys (id, hash, created_at, name, concurrency, requests_per_minute, queue_wait_ms,
  tokens_per_minute, tokens_per_day, models, allow_from, tags, expires_at, low_balance, compatibility, budget, group_name, weight)`;

/** The values of a key, in the order of those columns. */
function valuesOf(key: ApiKey, hash: string): Statement['values'] {
  return [key.id, hash, key.createdAtMs, key.name, ...settingsOf(key)];
}

/** Inserts a key, with an account that has no balance yet. */
export function insertKey(key: ApiKey, hash: string): readonly Statement[] {
  return [
    {
      sql: `${intoKeys} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      values: valuesOf(key, hash),
    },
    { sql: 'INSERT INTO accounts (key_id) VALUES (?)', values: [key.id] },
  ];
}

/** Inserts a key, with its account, if there is no key, and reads whether it is there. */
export function insertFirstKey(key: ApiKey, hash: string): readonly Statement[] {
  // The id of another key, where there is one: then there is a conflict, and nothing is inserted.
  const id = 'coalesce((SELECT min(id) FROM api_keys), ?)';
  return [
    {
      sql: `${intoKeys} VALUES (${id}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
      values: valuesOf(key, hash),
    },
    { sql: `INSERT INTO accounts (key_id) VALUES (${id}) ON CONFLICT (key_id) DO NOTHING`, values: [key.id] },
    { sql: 'SELECT count(*) AS count FROM api_keys WHERE id = ?', values: [key.id] },
  ];
}

/** The column of each setting that is stored as it is given. */
const columnOf = {
  name: 'name',
  concurrency: 'concurrency',
  requestsPerMinute: 'requests_per_minute',
  queueWaitMs: 'queue_wait_ms',
  tokensPerMinute: 'tokens_per_minute',
  tokensPerDay: 'tokens_per_day',
  expiresAt: 'expires_at',
  lowBalanceNanos: 'low_balance',
  group: 'group_name',
  weight: 'weight',
} as const;

/**
 * Changes the named settings, and reads the changed key. Columns that are not named are not written, so that changes
 * made at the same time undo nothing of each other. This and the two changes below leave declared keys as they are: a key
 * may have been declared since it was read.
 */
export function updateKey(id: string, changes: KeyChanges): readonly Statement[] {
  const { models, allowFrom, tags, compatibility, budget, ...plain } = changes;
  const written: (readonly [assignment: string, value: Statement['values'][number]])[] = [];
  for (const [name, value] of Object.entries(plain))
    if (value !== undefined) written.push([`${columnOf[name as keyof typeof plain]} = ?`, value]);
  if (models !== undefined) written.push(['models = ?', writeList(models)]);
  if (allowFrom !== undefined) written.push(['allow_from = ?', writeList(allowFrom)]);
  if (tags !== undefined) written.push(['tags = ?', writeTags(tags ?? [])]);
  if (compatibility !== undefined)
    written.push(['compatibility = json_patch(compatibility, ?)', JSON.stringify(compatibility)]);
  if (budget !== undefined) written.push(changeBudget(budget));
  if (written.length === 0) return [selectKeyById(id)];
  const assignments = written.map(([assignment]) => assignment).join(', ');
  const values = [...written.map(([, value]) => value), id];
  return [
    { sql: `UPDATE api_keys SET ${assignments} WHERE id = ? AND declared = 0`, values },
    selectKeyById(id),
  ];
}

/** Revokes a key. A key that was revoked before keeps its time. */
export function revokeKey(id: string, now: number): Statement {
  return {
    sql: 'UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?) WHERE id = ? AND declared = 0',
    values: [now, id],
  };
}

/** Replaces a key's secret. The one before stays valid until a time, and earlier ones no longer than that. */
export function rotateKey(id: string, hash: string, oldValidUntil: number): readonly Statement[] {
  return [
    {
      sql: `INSERT INTO old_secrets (hash, key_id, valid_until)
            SELECT hash, id, CAST(? AS BIGINT) FROM api_keys WHERE id = ? AND declared = 0`,
      values: [oldValidUntil, id],
    },
    {
      sql: `UPDATE old_secrets SET valid_until = ?
            WHERE valid_until > ? AND key_id = (SELECT id FROM api_keys WHERE id = ? AND declared = 0)`,
      values: [oldValidUntil, oldValidUntil, id],
    },
    { sql: 'UPDATE api_keys SET hash = ? WHERE id = ? AND declared = 0', values: [hash, id] },
  ];
}

/** Finds a key by the hash of its secret, or of an earlier secret that is still valid: the key then expires with that. */
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

/** The limits of some keys. */
export function selectLimits(keyIds: readonly string[]): Statement {
  return {
    sql: `SELECT id, concurrency, requests_per_minute, queue_wait_ms, tokens_per_minute, tokens_per_day FROM api_keys WHERE id IN (${placesOf(keyIds)})`,
    values: keyIds,
  };
}

/** The names of some keys. */
export function selectNames(keyIds: readonly string[]): Statement {
  return { sql: `SELECT id, name FROM api_keys WHERE id IN (${placesOf(keyIds)})`, values: keyIds };
}

const limitNames = [
  'concurrency',
  'requestsPerMinute',
  'queueWaitMs',
  'tokensPerMinute',
  'tokensPerDay',
] as const;

/** The limits that a key has of its own. */
export function readLimits(row: Row): Partial<Limits> {
  const limits: { -readonly [Name in keyof Limits]?: number } = {};
  for (const name of limitNames) {
    const value = row[columnOf[name]];
    if (value !== null) limits[name] = Number(value);
  }
  return limits;
}

export function readKey(row: Row): ApiKey {
  const ends = [row['expires_at'], row['valid_until']].filter((time) => typeof time === 'number');
  return {
    id: String(row['id']),
    name: String(row['name']),
    createdAtMs: Number(row['created_at']),
    limits: readLimits(row),
    models: readList(row['models']),
    allowFrom: readList(row['allow_from']),
    tags: readList(row['tags']) ?? [],
    expiresAt: ends.length === 0 ? null : Math.min(...ends),
    lowBalanceNanos: row['low_balance'] === null ? null : Number(row['low_balance']),
    revokedAtMs: row['revoked_at'] === null ? null : Number(row['revoked_at']),
    hasBalance: row['has_balance'] === 1,
    compatibility: JSON.parse(String(row['compatibility'])) as ApiKey['compatibility'],
    budget: readBudget(row['budget']),
    group: row['group_name'] === null ? null : String(row['group_name']),
    weight: row['weight'] === null ? defaultWeight : Number(row['weight']),
    isDeclared: row['declared'] === 1,
  };
}

/** A list as it is stored; `null` for a key without the restriction. */
function writeList(list: readonly string[] | null): string | null {
  return list === null ? null : JSON.stringify(list);
}

function readList(stored: Row[string] | undefined): readonly string[] | null {
  return stored === null || stored === undefined ? null : (JSON.parse(String(stored)) as string[]);
}

/** The tags of a key as they are stored: as before there were any for a key without. */
function writeTags(tags: readonly string[]): string | null {
  return writeList(tags.length === 0 ? null : tags);
}

/** The settings of a key that are stored in columns. */
type StoredSettings = Omit<DeclaredKey, 'name' | 'hash'>;

/** The values of a key's settings, in the order of their columns in `insertKey`. */
export function settingsOf({
  limits,
  models,
  allowFrom,
  tags,
  expiresAt,
  lowBalanceNanos,
  compatibility,
  budget,
  group,
  weight,
}: StoredSettings): Statement['values'] {
  return [
    limits.concurrency ?? null,
    limits.requestsPerMinute ?? null,
    limits.queueWaitMs ?? null,
    limits.tokensPerMinute ?? null,
    limits.tokensPerDay ?? null,
    writeList(models),
    writeList(allowFrom),
    writeTags(tags),
    expiresAt,
    lowBalanceNanos,
    JSON.stringify(compatibility),
    budget === null ? null : writeBudget(budget),
    group,
    weight === defaultWeight ? null : weight,
  ];
}
