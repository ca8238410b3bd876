import { coveringReference } from '../../domain/account.ts';
import type {
  ChangedDeclaration,
  DeclarationChanges,
  DeclaredKey,
  MovedSecrets,
} from '../../domain/keys/declared-key.ts';
import type { Results, Statement } from '../engine.ts';
import { settingsOf } from './key-statements.ts';

/** The text in place of the hash of a key that has no secret: no hash is like it. */
const noHash = `'none of ' || id`;

/** The id of the declared key of a name. */
const declaredId = '(SELECT id FROM api_keys WHERE name = ? AND declared = 1)';

/**
 * Stores changed declarations in one unit, which may be repeated. `posting` names what it posts to the ledger. Each step
 * is made for all keys before the next one, because the config may exchange secrets between keys, and no two rows have
 * the same hash at any time.
 *
 * The table of earlier secrets also remembers those of declared keys with a balance. A secret that is in it when its new
 * key is stored was prepaid, so that key gets a balance, too, and the secret is taken out.
 */
export function storeDeclarations(
  { changed, removed }: DeclarationChanges,
  posting: string,
  nowMs: number,
): readonly Statement[] {
  const keys = changed.map(({ declared }) => declared);
  return [
    ...removed.map((name) => removeDeclaration(name, nowMs)),
    ...keys.flatMap((key) => giveUpSecret(key, nowMs)),
    ...keys.flatMap((key) => takeSecret(key, nowMs)),
    ...changed.flatMap((change) => storeDeclaration(change, nowMs)),
    ...keys.flatMap((key) => endWithoutBalance(key, posting, nowMs)),
  ];
}

/** What the unit of `storeDeclarations` did, from the rows of its statements. */
export function readMovedSecrets(results: Results): MovedSecrets {
  const rows = results.flat();
  const namesIn = (column: keyof MovedSecrets): readonly string[] =>
    rows.filter((row) => column in row).map((row) => String(row[column]));
  return { renamed: namesIn('renamed'), adopted: namesIn('adopted'), unfunded: namesIn('unfunded') };
}

/** Revokes a key that is declared no more. It keeps its secret, by which it is found if it is declared under a new name. */
function removeDeclaration(name: string, nowMs: number): Statement {
  return {
    sql: 'UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?) WHERE name = ? AND declared = 1',
    values: [nowMs, name],
  };
}

/** Takes another secret than the declared one from the key of this name, which is in force from now on. */
function giveUpSecret({ name, hash }: DeclaredKey, nowMs: number): readonly Statement[] {
  return [
    rememberPrepaid('name = ? AND declared = 1 AND hash <> ?', [name, hash], nowMs),
    {
      sql: `UPDATE api_keys SET revoked_at = NULL, hash = CASE WHEN hash = ? THEN hash ELSE ${noHash} END
            WHERE name = ? AND declared = 1`,
      values: [hash, name],
    },
  ];
}

/**
 * Takes a secret from the key that has it now. An issued key becomes the declared one, and a key that is declared no more
 * (so that it is still revoked at this step) gets the new name, unless there is a declared key of that name already:
 * then an issued key is revoked, since one secret can't stand for two keys. A revoked issued key keeps its secret, and
 * the unit fails: whether such a secret may be declared is decided before.
 */
function takeSecret({ name, hash }: DeclaredKey, nowMs: number): readonly Statement[] {
  const isNew = 'NOT EXISTS (SELECT 1 FROM api_keys WHERE name = ? AND declared = 1)';
  return [
    {
      sql: `UPDATE api_keys SET name = ?, declared = 1 WHERE hash = ? AND declared = 0 AND revoked_at IS NULL
              AND ${isNew} RETURNING name AS adopted`,
      values: [name, hash, name],
    },
    {
      sql: `UPDATE api_keys SET name = ?, revoked_at = NULL WHERE hash = ? AND declared = 1 AND revoked_at IS NOT NULL
              AND ${isNew} RETURNING name AS renamed`,
      values: [name, hash, name],
    },
    rememberPrepaid('hash = ? AND (declared = 0 OR name <> ?)', [hash, name], nowMs),
    {
      sql: `UPDATE api_keys SET revoked_at = ?, hash = ${noHash} WHERE hash = ? AND declared = 0 AND revoked_at IS NULL`,
      values: [nowMs, hash],
    },
    {
      sql: `UPDATE api_keys SET hash = ${noHash} WHERE hash = ? AND declared = 1 AND name <> ?`,
      values: [hash, name],
    },
    {
      sql: `DELETE FROM old_secrets WHERE hash = ?
              AND (SELECT balance FROM accounts WHERE accounts.key_id = old_secrets.key_id) IS NULL`,
      values: [hash],
    },
  ];
}

/** Remembers the secret of the key that a condition finds, if that key has a balance. The secret itself is not valid. */
function rememberPrepaid(condition: string, values: Statement['values'], nowMs: number): Statement {
  return {
    sql: `INSERT INTO old_secrets (hash, key_id, valid_until)
          SELECT hash, id, CAST(? AS BIGINT) FROM api_keys JOIN accounts ON accounts.key_id = id
          WHERE ${condition} AND balance IS NOT NULL AND hash <> ${noHash}
          ON CONFLICT (hash) DO NOTHING`,
    values: [nowMs, ...values],
  };
}

/** Changes the key of this name, or inserts it with an account that has no balance yet. */
function storeDeclaration(
  { id, spareId, declared }: ChangedDeclaration,
  nowMs: number,
): readonly Statement[] {
  const { name, hash } = declared;
  return [
    {
      sql: `UPDATE api_keys SET hash = ?, concurrency = ?, requests_per_minute = ?, queue_wait_ms = ?, models = ?,
              expires_at = ?, compatibility = ?
            WHERE name = ? AND declared = 1`,
      values: [hash, ...settingsOf(declared), name],
    },
    {
      sql: `INSERT INTO api_keys (id, hash, created_at, name, concurrency, requests_per_minute, queue_wait_ms, models,
              expires_at, compatibility, declared)
            VALUES (CASE WHEN EXISTS (SELECT 1 FROM api_keys WHERE id = ?) THEN ? ELSE ? END,
              ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)
            ON CONFLICT (name) WHERE declared = 1 DO NOTHING`,
      values: [id, spareId, id, hash, nowMs, name, ...settingsOf(declared)],
    },
    {
      // VALUES rather than SELECT: of one row SQLite knows that no other table refers to it yet.
      sql: `INSERT INTO accounts (key_id) VALUES (${declaredId}) ON CONFLICT (key_id) DO NOTHING`,
      values: [name],
    },
  ];
}

/**
 * Gives a key whose secret was prepaid a balance of 0, if it has none: its client pays from the next credit on, and can't
 * spend without one. What the key spent before is covered, as by a first credit.
 */
function endWithoutBalance(
  { name, hash }: DeclaredKey,
  posting: string,
  nowMs: number,
): readonly Statement[] {
  const hasToPay = 'balance IS NULL AND EXISTS (SELECT 1 FROM old_secrets WHERE hash = ?)';
  return [
    // Locked first, as by every unit that moves money.
    { sql: `UPDATE accounts SET held = held WHERE key_id = ${declaredId}`, values: [name] },
    {
      sql: `INSERT INTO ledger (key_id, number, created_at, kind, delta, reference, posting)
            SELECT key_id, postings + 1, CAST(? AS BIGINT), 'credit', spent, ?, ? FROM accounts
            WHERE key_id = ${declaredId} AND spent > 0 AND ${hasToPay}`,
      values: [nowMs, coveringReference, posting, name, hash],
    },
    {
      sql: `UPDATE accounts SET balance = 0, postings = postings + CASE WHEN spent > 0 THEN 1 ELSE 0 END
            WHERE key_id = ${declaredId} AND ${hasToPay} RETURNING CAST(? AS TEXT) AS unfunded`,
      values: [name, hash, name],
    },
    { sql: 'DELETE FROM old_secrets WHERE hash = ?', values: [hash] },
  ];
}
