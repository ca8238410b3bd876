import { maxDeclaredKeys } from '../../domain/keys/declared-key.ts';
import type {
  ChangedDeclaration,
  DeclarationChanges,
  DeclaredKey,
  MovedSecrets,
  StoredDeclarations,
} from '../../domain/keys/declared-key.ts';
import { coveringReference } from '../../domain/money/account.ts';
import type { NextId } from '../../domain/ports/clock.ts';
import type { DeclarationStore } from '../../domain/ports/key-store.ts';
import type { Engine, Results, Statement } from '../engine.ts';
import { declareTable, placesOf, rowsOf } from '../statements.ts';
import { columns, readKey, settingNames, settingsOf, settingTypes } from './stored-key.ts';

/** Stores the declared keys over any engine. */
export function createDeclarationStore(
  engine: Engine,
  nextId: NextId,
  nowMs: () => number,
): DeclarationStore {
  return {
    async listDeclarations(declared) {
      return readDeclarations(await engine.read(selectDeclarations(declared, nowMs())));
    },
    async storeDeclarations(changes, changedAtMs) {
      return readMovedSecrets(await engine.run(storeDeclarations(changes, nextId(), changedAtMs)));
    },
  };
}

const selectDeclaration = `SELECT ${columns}, hash FROM api_keys JOIN accounts ON accounts.key_id = id WHERE declared = 1`;

/**
 * Reads what declared keys have to be compared with: the declared keys in force, the revoked ones of the same names, and
 * which of the declared secrets were retired. Names of earlier configs are not read, however many there were.
 */
function selectDeclarations(declared: readonly DeclaredKey[], nowMs: number): readonly Statement[] {
  const hashes = declared.map(({ hash }) => hash);
  const places = placesOf(declared);
  return [
    {
      sql: `${selectDeclaration} AND revoked_at IS NULL LIMIT ?`,
      values: [maxDeclaredKeys],
    },
    {
      sql: `${selectDeclaration} AND revoked_at IS NOT NULL AND name IN (${places})`,
      values: declared.map(({ name }) => name),
    },
    {
      // Secrets of declared keys are not retired, since the config alone decides on them.
      sql: `SELECT hash FROM api_keys WHERE hash IN (${places}) AND declared = 0 AND revoked_at IS NOT NULL
            UNION ALL
            SELECT old_secrets.hash FROM old_secrets JOIN api_keys ON id = old_secrets.key_id
            WHERE old_secrets.hash IN (${places}) AND declared = 0 AND (revoked_at IS NOT NULL OR valid_until <= ?)`,
      values: [...hashes, ...hashes, nowMs],
    },
  ];
}

/** What `selectDeclarations` found, from the rows of its statements. */
function readDeclarations([current = [], revoked = [], retired = []]: Results): StoredDeclarations {
  return {
    keys: [...current, ...revoked].map((row) => ({ key: readKey(row), hash: String(row['hash']) })),
    retired: new Set(retired.map(({ hash }) => String(hash))),
  };
}

/** The text in place of the hash of a key that has no secret: no hash is like it. */
const noHash = `'none of ' || api_keys.id`;

/** The columns of declared keys that say which name has which secret. */
const secretColumns = { name: 'TEXT', hash: 'TEXT' };

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
function storeDeclarations(
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
function readMovedSecrets(results: Results): MovedSecrets {
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
  const all = declareTable({ ...secretColumns, id: 'TEXT', spare_id: 'TEXT', ...settingTypes });
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
            UPDATE api_keys SET hash = wanted.hash, ${settingNames.map((name) => `${name} = wanted.${name}`).join(', ')}
            FROM wanted WHERE ${isNamed}`,
      values: [keys],
    },
    {
      sql: `${all}
            INSERT INTO api_keys (id, hash, created_at, name, ${settingNames.join(', ')}, declared)
            SELECT CASE WHEN EXISTS (SELECT 1 FROM api_keys WHERE api_keys.id = wanted.id) THEN spare_id ELSE id END,
              hash, CAST(? AS BIGINT), name, ${settingNames.join(', ')}, 1
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
