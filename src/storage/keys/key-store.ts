import { keyEntry } from '../../domain/audit/audit-line.ts';
import type { Actor, AuditEntry } from '../../domain/audit/audit-line.ts';
import { differencesOf, fieldsOfKey, noFields } from '../../domain/audit/differences.ts';
import type { ApiKey } from '../../domain/keys/api-key.ts';
import { openingReference } from '../../domain/ports/accounts.ts';
import type { NextId } from '../../domain/ports/clock.ts';
import type { KeyFilter, KeyLookUp, KeyState, KeyStore } from '../../domain/ports/key-store.ts';
import { formatUsd } from '../../shared/money.ts';
import { addLines } from '../audit/audit-lines.ts';
import type { Engine, Row, Statement } from '../engine.ts';
import { bookCredit } from '../ledger/accounts.ts';
import { listOf, lookUpRows, raw, readCount, readRows, sql, where } from '../statements.ts';
import { createKeyChanges } from './key-changes.ts';
import { columns, limitList, readKey, readLimits, settingNames, settingsOf } from './stored-key.ts';

/** Stores keys over any engine. Reads wait for no unit. */
export function createKeyStore(engine: Engine, nextId: NextId, nowMs: () => number): KeyStore & KeyLookUp {
  return {
    ...createKeyChanges(engine, nowMs),
    async createKey(key, hash, nanos, by) {
      const lines = by === undefined ? [] : [addLines([creation(by, key, hash, nanos)], nowMs())];
      await engine.run([...insertKey(key, hash), ...openAccount(key, nanos, nextId()), ...lines]);
    },
    async importKey(key, hash, nanos, by) {
      const credit = openAccount(key, nanos, nextId());
      const lines =
        by === undefined ? [] : [addLines([creation(by, key, hash, nanos)], nowMs(), isStored(key.id))];
      const results = await engine.run([
        ...insertImported(key, hash),
        ...credit,
        ...lines,
        selectHolder(hash),
      ]);
      return String(results.at(-1)?.[0]?.['id']);
    },
    async findHolder(hash) {
      const [row] = await lookUpRows(engine, selectHolder(hash));
      return row === undefined ? null : String(row['id']);
    },
    async createFirstKey(key, hash, by) {
      const lines =
        by === undefined ? [] : [addLines([creation(by, key, hash, null)], nowMs(), isStored(key.id))];
      const [, , [row] = []] = await engine.run([...insertFirstKey(key, hash), ...lines]);
      return row?.['count'] === 1;
    },
    async findKeyByHash(hash) {
      return readFirst(await lookUpRows(engine, selectKeyByHash(hash, nowMs())));
    },
    async findKeyById(id) {
      return readFirst(await lookUpRows(engine, selectKeyById(id)));
    },
    async listKeys(filter, limit, before) {
      const behind = before === null ? null : readFirst(await readRows(engine, selectKeyById(before)));
      if (before !== null && behind === null) return null;
      const found = await readRows(engine, selectKeys(filter, limit + 1, behind, nowMs()));
      const keys = found.slice(0, limit).map(readKey);
      return { keys, next: found.length > limit ? (keys.at(-1)?.id ?? null) : null };
    },
    async limitsOf(keyIds) {
      const rows = await readRows(engine, selectLimits(keyIds));
      return new Map(rows.map((row) => [String(row['id']), readLimits(row)]));
    },
    async namesOf(keyIds) {
      const rows = await readRows(engine, selectNames(keyIds));
      return new Map(rows.map((row) => [String(row['id']), String(row['name'])]));
    },
    countKeys: () => readCount(engine, sql`SELECT count(*) AS count FROM api_keys`),
  };
}

/** The key in the first of some rows; `null` without any. */
function readFirst([row]: readonly Row[] = []): ApiKey | null {
  return row === undefined ? null : readKey(row);
}

const selectKey = sql`SELECT ${raw(columns)} FROM api_keys JOIN accounts ON accounts.key_id = id`;

/** Inserts a key under an id, which is an expression. */
function intoKeys(id: Statement, key: ApiKey, hash: string): Statement {
  return sql`INSERT INTO api_keys (id, hash, created_at, name, ${raw(settingNames.join(', '))})
    VALUES (${id}, ${hash}, ${key.createdAtMs}, ${key.name}, ${listOf(settingsOf(key))})`;
}

/** Inserts a key, with an account that has no balance yet. */
function insertKey(key: ApiKey, hash: string): readonly Statement[] {
  return [intoKeys(sql`${key.id}`, key, hash), sql`INSERT INTO accounts (key_id) VALUES (${key.id})`];
}

/** Gives the account of a new key its opening balance, if it has one. */
function openAccount(
  { id, createdAtMs }: ApiKey,
  nanos: number | null,
  posting: string,
): readonly Statement[] {
  return nanos === null
    ? []
    : bookCredit({ keyId: id, reference: openingReference, nanos }, posting, createdAtMs);
}

/** Inserts a key, with its account, if no key has the hash or had it. */
function insertImported(key: ApiKey, hash: string): readonly Statement[] {
  // The id of the key that had the hash, where there is one: then there is a conflict, and nothing is inserted.
  const id = sql`coalesce((SELECT key_id FROM old_secrets WHERE old_secrets.hash = ${hash}), ${key.id})`;
  return [
    sql`${intoKeys(id, key, hash)} ON CONFLICT DO NOTHING`,
    sql`INSERT INTO accounts (key_id) SELECT id FROM api_keys WHERE id = ${key.id} ON CONFLICT (key_id) DO NOTHING`,
  ];
}

/** Finds the key that has a hash, or had it. */
function selectHolder(hash: string): Statement {
  return sql`SELECT id FROM api_keys WHERE hash = ${hash} UNION ALL SELECT key_id FROM old_secrets WHERE hash = ${hash}`;
}

/** Inserts a key, with its account, if there is no key, and reads whether it is there. */
function insertFirstKey(key: ApiKey, hash: string): readonly Statement[] {
  // The id of another key, where there is one: then there is a conflict, and nothing is inserted.
  const id = sql`coalesce((SELECT min(id) FROM api_keys), ${key.id})`;
  return [
    sql`${intoKeys(id, key, hash)} ON CONFLICT (id) DO NOTHING`,
    sql`INSERT INTO accounts (key_id) VALUES (${id}) ON CONFLICT (key_id) DO NOTHING`,
    sql`SELECT count(*) AS count FROM api_keys WHERE id = ${key.id}`,
  ];
}

/** Whether a key was stored by the statements before: another one may have been there. */
function isStored(id: string): Statement {
  return sql`EXISTS (SELECT 1 FROM api_keys WHERE id = ${id})`;
}

/** The line of a key that is created. */
function creation(by: Actor, key: ApiKey, hash: string, nanos: number | null): AuditEntry {
  const balance = nanos === null ? {} : { balance: formatUsd(nanos) };
  return keyEntry(by, 'key.create', key.id, differencesOf(noFields, fieldsOfKey(key, hash, balance)));
}

/** Finds a key by the hash of its secret, or of an earlier secret that is still valid: the key then expires with that. */
function selectKeyByHash(hash: string, now: number): Statement {
  return sql`SELECT ${raw(columns)}, NULL AS valid_until FROM api_keys JOIN accounts ON accounts.key_id = id WHERE hash = ${hash}
    UNION ALL
    SELECT ${raw(columns)}, valid_until FROM old_secrets JOIN api_keys ON id = old_secrets.key_id
      JOIN accounts ON accounts.key_id = id WHERE old_secrets.hash = ${hash} AND valid_until > ${now}`;
}

function selectKeyById(id: string): Statement {
  return sql`${selectKey} WHERE id = ${id}`;
}

/** The limits of some keys. */
function selectLimits(keyIds: readonly string[]): Statement {
  return sql`SELECT id, ${raw(limitList)} FROM api_keys WHERE id IN (${listOf(keyIds)})`;
}

/** The names of some keys. */
function selectNames(keyIds: readonly string[]): Statement {
  return sql`SELECT id, name FROM api_keys WHERE id IN (${listOf(keyIds)})`;
}

/** A page of those keys that a filter wants, newest first, behind the key that has the time and the id of `before`. */
function selectKeys(
  { search, state }: KeyFilter,
  limit: number,
  before: Pick<ApiKey, 'id' | 'createdAtMs'> | null,
  nowMs: number,
): Statement {
  const wanted: Statement[] = [];
  if (search !== undefined) wanted.push(hasText(search));
  if (state !== undefined) wanted.push(isIn(state, nowMs));
  if (before !== null) wanted.push(sql`(created_at, id) < (${before.createdAtMs}, ${before.id})`);
  return sql`${selectKey}${where(wanted)} ORDER BY created_at DESC, id DESC LIMIT ${limit}`;
}

/** Whether a key's name contains a text, or its id begins with it, in upper or lower case. */
function hasText(text: string): Statement {
  // LIKE reads `%` and `_` as wildcards: a search for `team_a` would also find `team-a`.
  const plain = text.replaceAll(/[\\%_]/g, String.raw`\$&`);
  return sql`(lower(name) LIKE lower(${`%${plain}%`}) ESCAPE '\\' OR lower(id) LIKE lower(${`${plain}%`}) ESCAPE '\\')`;
}

/** Whether a key is in a state now. A revoked key stays revoked when it expires. */
function isIn(state: KeyState, nowMs: number): Statement {
  if (state === 'revoked') return sql`revoked_at IS NOT NULL`;
  if (state === 'expired') return sql`revoked_at IS NULL AND expires_at <= ${nowMs}`;
  return sql`revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ${nowMs})`;
}
