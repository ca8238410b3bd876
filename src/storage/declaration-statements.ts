import type { DeclarationChanges, DeclaredKey } from '../domain/keys/declared-key.ts';
import type { Statement } from './engine.ts';
import { settingsOf } from './key-statements.ts';

/**
 * Stores changed declarations in one unit, which may be repeated. Secrets are given up before any is taken, because the
 * config may exchange those of two keys, and no two rows have the same hash at any time.
 */
export function storeDeclarations(
  { changed, removed }: DeclarationChanges,
  nowMs: number,
): readonly Statement[] {
  return [
    ...removed.map((name) => removeDeclaration(name, nowMs)),
    ...changed.flatMap(({ declared }) => releaseSecret(declared, nowMs)),
    ...changed.flatMap((change) => storeDeclaration(change, nowMs)),
  ];
}

/** Revokes a key that is declared no more. It gives up its secret, so that another key may be declared with it. */
function removeDeclaration(name: string, nowMs: number): Statement {
  return {
    sql: `UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?), hash = 'none of ' || id
          WHERE name = ? AND declared = 1`,
    values: [nowMs, name],
  };
}

/**
 * Takes a secret from the key that has it now. A key that was issued becomes the declared one, with its id, account and
 * records, unless there is one of that name already: then it is revoked, since one secret can't stand for two keys.
 */
function releaseSecret({ name, hash }: DeclaredKey, nowMs: number): readonly Statement[] {
  const isNew = 'NOT EXISTS (SELECT 1 FROM api_keys WHERE name = ? AND declared = 1)';
  return [
    {
      sql: `UPDATE api_keys SET name = ?, declared = 1 WHERE hash = ? AND declared = 0 AND ${isNew}`,
      values: [name, hash, name],
    },
    {
      sql: `UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?), hash = 'none of ' || id
            WHERE hash = ? AND declared = 0`,
      values: [nowMs, hash],
    },
    {
      sql: `UPDATE api_keys SET hash = 'none of ' || id WHERE hash = ? AND declared = 1 AND name <> ?`,
      values: [hash, name],
    },
    { sql: 'DELETE FROM old_secrets WHERE hash = ?', values: [hash] },
  ];
}

/** Changes the key of this name, or inserts it with an account that has no balance yet. */
function storeDeclaration(
  { id, declared }: DeclarationChanges['changed'][number],
  nowMs: number,
): readonly Statement[] {
  const { name, hash } = declared;
  return [
    {
      sql: `UPDATE api_keys SET hash = ?, concurrency = ?, requests_per_minute = ?, queue_wait_ms = ?, models = ?,
              expires_at = ?, compatibility = ?, revoked_at = NULL
            WHERE name = ? AND declared = 1`,
      values: [hash, ...settingsOf(declared), name],
    },
    {
      sql: `INSERT INTO api_keys (id, hash, created_at, name, concurrency, requests_per_minute, queue_wait_ms, models,
              expires_at, compatibility, declared)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT DO NOTHING`,
      values: [id, hash, nowMs, name, ...settingsOf(declared)],
    },
    {
      // VALUES rather than SELECT: of one row SQLite knows that no other table refers to it yet.
      sql: `INSERT INTO accounts (key_id) VALUES ((SELECT id FROM api_keys WHERE name = ? AND declared = 1))
            ON CONFLICT (key_id) DO NOTHING`,
      values: [name],
    },
  ];
}
