import { coveringReference } from '../../domain/money/account.ts';
import type { ChangedDeclaration, DeclarationChanges, MovedSecrets } from '../../domain/keys/declared-key.ts';
import type { Results, Statement } from '../engine.ts';
import { settingsOf } from './key-statements.ts';
import { declareTable, rowsOf, secretColumns, settingColumns } from './wanted-rows.ts';

/** The text in place of the hash of a key that has no secret: no hash is like it. */
const noHash = `'none of ' || api_keys.id`;

const wanted = declareTable(secretColumns);

/** The condition on a stored key that it is the declared one of that name. */
const isNamed = 'api_keys.name = wanted.name AND declared = 1';

/** The condition on a wanted key that none of its name is stored as declared. */
const isNew =
  'NOT EXISTS (SELECT 1 FROM api_keys AS named WHERE named.name = wanted.name AND named.declared = 1)';

/**
 * Stores changed declarations in one unit, which may be repeated. `posting` names what it posts to the ledger. Each step
 * is made for all keys at once, before the next one, because the config may exchange secrets between keys, and no two rows
 * have the same hash at any time. So the number of statements does not grow with that of the keys.
 *
 * The table of earlier secrets also remembers those of declared keys with a balance. A secret that is in it when its new
 * key is stored was prepaid, so that key gets a balance, too, and the secret is taken out.
 */
export function storeDeclarations(
  { changed, removed }: DeclarationChanges,
  posting: string,
  nowMs: number,
): readonly Statement[] {
  const secrets = rowsOf(changed.map(({ declared: { name, hash } }) => [name, hash]));
  return [
    ...(removed.length === 0 ? [] : [removeDeclarations(removed, nowMs)]),
    ...(changed.length === 0
      ? []
      : [
          ...giveUpSecrets(secrets, nowMs),
          ...takeSecrets(secrets, nowMs),
          ...storeKeys(changed, secrets, nowMs),
          ...endWithoutBalance(secrets, posting, nowMs),
        ]),
  ];
}

/** What the unit of `storeDeclarations` did, from the rows of its statements. */
export function readMovedSecrets(results: Results): MovedSecrets {
  const rows = results.flat();
  const namesIn = (column: keyof MovedSecrets): readonly string[] =>
    rows
      .filter((row) => column in row)
      .map((row) => String(row[column]))
      .toSorted();
  return { renamed: namesIn('renamed'), adopted: namesIn('adopted'), unfunded: namesIn('unfunded') };
}

/** Revokes keys that are declared no more. They keep their secrets, by which they are found under new names. */
function removeDeclarations(names: readonly string[], nowMs: number): Statement {
  return {
    sql: `${declareTable({ name: 'TEXT' })}
          UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?) FROM wanted WHERE ${isNamed}`,
    values: [rowsOf(names.map((name) => [name])), nowMs],
  };
}

/** Takes other secrets than the declared ones from the keys of these names, which are in force from now on. */
function giveUpSecrets(secrets: string, nowMs: number): readonly Statement[] {
  return [
    rememberPrepaid(`${isNamed} AND api_keys.hash <> wanted.hash`, secrets, nowMs),
    {
      sql: `${wanted}
            UPDATE api_keys SET revoked_at = NULL,
              hash = CASE WHEN api_keys.hash = wanted.hash THEN api_keys.hash ELSE ${noHash} END
            FROM wanted WHERE ${isNamed}`,
      values: [secrets],
    },
  ];
}

/**
 * Takes secrets from the keys that have them now. An issued key becomes the declared one, and a key that is declared no
 * more (so that it is still revoked at this step) gets the new name, unless there is a declared key of that name already:
 * then an issued key is revoked, since one secret can't stand for two keys. A revoked issued key keeps its secret, and
 * the unit fails: whether such a secret may be declared is decided before.
 */
function takeSecrets(secrets: string, nowMs: number): readonly Statement[] {
  return [
    {
      sql: `${wanted}
            UPDATE api_keys SET name = wanted.name, declared = 1 FROM wanted
            WHERE api_keys.hash = wanted.hash AND declared = 0 AND revoked_at IS NULL AND ${isNew}
            RETURNING api_keys.name AS adopted`,
      values: [secrets],
    },
    {
      sql: `${wanted}
            UPDATE api_keys SET name = wanted.name, revoked_at = NULL FROM wanted
            WHERE api_keys.hash = wanted.hash AND declared = 1 AND revoked_at IS NOT NULL AND ${isNew}
            RETURNING api_keys.name AS renamed`,
      values: [secrets],
    },
    rememberPrepaid(
      'api_keys.hash = wanted.hash AND (declared = 0 OR api_keys.name <> wanted.name)',
      secrets,
      nowMs,
    ),
    {
      sql: `${wanted}
            UPDATE api_keys SET revoked_at = ?, hash = ${noHash} FROM wanted
            WHERE api_keys.hash = wanted.hash AND declared = 0 AND revoked_at IS NULL`,
      values: [secrets, nowMs],
    },
    {
      sql: `${wanted}
            UPDATE api_keys SET hash = ${noHash} FROM wanted
            WHERE api_keys.hash = wanted.hash AND declared = 1 AND api_keys.name <> wanted.name`,
      values: [secrets],
    },
    {
      sql: `${wanted}
            DELETE FROM old_secrets WHERE hash IN (SELECT hash FROM wanted)
              AND (SELECT balance FROM accounts WHERE accounts.key_id = old_secrets.key_id) IS NULL`,
      values: [secrets],
    },
  ];
}

/** Remembers the secrets of the keys that a condition finds, if they have a balance. The secrets themselves are not valid. */
function rememberPrepaid(condition: string, secrets: string, nowMs: number): Statement {
  return {
    sql: `${wanted}
          INSERT INTO old_secrets (hash, key_id, valid_until)
          SELECT api_keys.hash, api_keys.id, CAST(? AS BIGINT)
          FROM wanted JOIN api_keys ON ${condition} JOIN accounts ON accounts.key_id = api_keys.id
          WHERE balance IS NOT NULL AND api_keys.hash <> ${noHash}
          ON CONFLICT (hash) DO NOTHING`,
    values: [secrets, nowMs],
  };
}

/** Changes the keys of these names, or inserts them with accounts that have no balance yet. */
function storeKeys(
  changed: readonly ChangedDeclaration[],
  secrets: string,
  nowMs: number,
): readonly Statement[] {
  const all = declareTable({ ...secretColumns, ...settingColumns });
  const keys = rowsOf(
    changed.map(({ id, spareId, declared }) => [
      declared.name,
      declared.hash,
      id,
      spareId,
      ...settingsOf(declared),
    ]),
  );
  return [
    {
      sql: `${all}
            UPDATE api_keys SET hash = wanted.hash, concurrency = wanted.concurrency,
              requests_per_minute = wanted.requests_per_minute, queue_wait_ms = wanted.queue_wait_ms,
              tokens_per_minute = wanted.tokens_per_minute, tokens_per_day = wanted.tokens_per_day,
              models = wanted.models, allow_from = wanted.allow_from, tags = wanted.tags,
              expires_at = wanted.expires_at, low_balance = wanted.low_balance,
              compatibility = wanted.compatibility, budget = wanted.budget,
              group_name = wanted.group_name, weight = wanted.weight
            FROM wanted WHERE ${isNamed}`,
      values: [keys],
    },
    {
      sql: `${all}
            INSERT INTO api_keys (id, hash, created_at, name, concurrency, requests_per_minute, queue_wait_ms,
              tokens_per_minute, tokens_per_day, models, allow_from, tags, expires_at, low_balance, compatibility,
              budget, group_name, weight, declared)
            SELECT CASE WHEN EXISTS (SELECT 1 FROM api_keys WHERE api_keys.id = wanted.id) THEN spare_id ELSE id END,
              hash, CAST(? AS BIGINT), name, concurrency, requests_per_minute, queue_wait_ms, tokens_per_minute,
              tokens_per_day, models, allow_from, tags, expires_at, low_balance, compatibility, budget,
              group_name, weight, 1
            FROM wanted WHERE ${isNew}`,
      values: [keys, nowMs],
    },
    {
      sql: `${wanted}
            INSERT INTO accounts (key_id) SELECT api_keys.id FROM wanted JOIN api_keys ON ${isNamed} WHERE true
            ON CONFLICT (key_id) DO NOTHING`,
      values: [secrets],
    },
  ];
}

/**
 * Gives keys whose secrets were prepaid a balance of 0, if they have none: their clients pay from the next credit on, and
 * can't spend without one. What such a key spent before is covered, as by a first credit.
 */
function endWithoutBalance(secrets: string, posting: string, nowMs: number): readonly Statement[] {
  const isPrepaid = `key_id IN (SELECT api_keys.id FROM wanted JOIN api_keys ON ${isNamed}
    JOIN old_secrets ON old_secrets.hash = wanted.hash)`;
  return [
    // Locked first, as by every unit that moves money.
    { sql: `${wanted} UPDATE accounts SET held = held WHERE ${isPrepaid}`, values: [secrets] },
    {
      sql: `${wanted}
            INSERT INTO ledger (key_id, number, created_at, kind, delta, reference, posting)
            SELECT key_id, postings + 1, CAST(? AS BIGINT), 'credit', spent, ?, ? FROM accounts
            WHERE spent > 0 AND balance IS NULL AND ${isPrepaid}`,
      values: [secrets, nowMs, coveringReference, posting],
    },
    {
      sql: `${wanted}
            UPDATE accounts SET balance = 0, postings = postings + CASE WHEN spent > 0 THEN 1 ELSE 0 END
            WHERE balance IS NULL AND ${isPrepaid}
            RETURNING (SELECT name FROM api_keys WHERE api_keys.id = accounts.key_id) AS unfunded`,
      values: [secrets],
    },
    {
      sql: `${wanted} DELETE FROM old_secrets WHERE hash IN (SELECT hash FROM wanted)`,
      values: [secrets],
    },
  ];
}
