import { keyEntry } from '../../domain/audit/audit-line.ts';
import type { Actor, AuditAction, AuditEntry } from '../../domain/audit/audit-line.ts';
import { differencesOf, fieldsOfKey, noFields } from '../../domain/audit/differences.ts';
import type { FieldChange, Fields } from '../../domain/audit/differences.ts';
import { nameOf } from '../../domain/audit/safe-text.ts';
import { maxDeclaredKeys } from '../../domain/keys/declared-key.ts';
import type {
  ChangedDeclaration,
  DeclarationChanges,
  DeclaredKey,
  MovedSecrets,
  StoredDeclarations,
} from '../../domain/keys/declared-key.ts';
import { coveringReference } from '../../domain/ports/accounts.ts';
import type { NextId } from '../../domain/ports/clock.ts';
import type { DeclarationStore } from '../../domain/ports/key-store.ts';
import { addLines } from '../audit/audit-lines.ts';
import type { Engine, Results, Statement } from '../engine.ts';
import { anyway, listOf, raw, sql, withWanted } from '../statements.ts';
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

const selectDeclaration = sql`SELECT ${raw(columns)}, hash FROM api_keys JOIN accounts ON accounts.key_id = id WHERE declared = 1`;

/**
 * Reads what declared keys have to be compared with: the declared keys in force, the revoked ones of the same names, and
 * which of the declared secrets were retired. Names of earlier configs are not read, however many there were.
 */
function selectDeclarations(declared: readonly DeclaredKey[], nowMs: number): readonly Statement[] {
  const hashes = listOf(declared.map(({ hash }) => hash));
  const names = listOf(declared.map(({ name }) => name));
  return [
    sql`${selectDeclaration} AND revoked_at IS NULL LIMIT ${maxDeclaredKeys}`,
    sql`${selectDeclaration} AND revoked_at IS NOT NULL AND name IN (${names})`,
    // Secrets of declared keys are not retired, since the config alone decides on them.
    sql`SELECT last FROM audit_chain WHERE id = 1`,
    sql`SELECT hash FROM api_keys WHERE hash IN (${hashes}) AND declared = 0 AND revoked_at IS NOT NULL
      UNION ALL
      SELECT old_secrets.hash FROM old_secrets JOIN api_keys ON id = old_secrets.key_id
      WHERE old_secrets.hash IN (${hashes}) AND declared = 0 AND (revoked_at IS NOT NULL OR valid_until <= ${nowMs})`,
  ];
}

/** What `selectDeclarations` found, from the rows of its statements. */
function readDeclarations([
  current = [],
  revoked = [],
  chain = [],
  retired = [],
]: Results): StoredDeclarations {
  return {
    keys: [...current, ...revoked].map((row) => ({ key: readKey(row), hash: String(row['hash']) })),
    lastLine: Number(chain[0]?.['last'] ?? 0),
    retired: new Set(retired.map(({ hash }) => String(hash))),
  };
}

/** The text in place of the hash of a key that has no secret: no hash is like it. */
const noHash = sql`'none of ' || api_keys.id`;

/** The columns of declared keys that say which name has which secret. */
const secretColumns = { name: 'TEXT', hash: 'TEXT' };

/** The condition on a stored key that it is the declared one of that name. */
const isNamed = sql`api_keys.name = wanted.name AND declared = 1`;

/** The condition on a wanted key that none of its name is stored as declared. */
const isNew = sql`NOT EXISTS (SELECT 1 FROM api_keys AS named WHERE named.name = wanted.name AND named.declared = 1)`;

/**
 * Stores changed declarations in one unit, which may be repeated. `posting` names what it posts to the ledger. Each step
 * is made for all keys at once, before the next one, because the config may exchange secrets between keys, and no two rows
 * have the same hash at any time. So the number of statements does not grow with that of the keys.
 *
 * The table of earlier secrets also remembers those of declared keys with a balance. A secret that is in it when its new
 * key is stored was prepaid, so that key gets a balance, too, and the secret is taken out.
 */
function storeDeclarations(
  { changed, removed, lastLine }: DeclarationChanges,
  posting: string,
  nowMs: number,
): readonly Statement[] {
  const isCurrent = lastLine === undefined ? anyway : noneDeclaredBehind(lastLine);
  const wanted = withWanted(
    secretColumns,
    changed.map(({ declared: { name, hash } }) => [name, hash]),
    isCurrent,
  );
  return [
    ...(removed.length === 0 ? [] : [removeDeclarations(removed, nowMs, isCurrent)]),
    ...(changed.length === 0
      ? []
      : [
          ...giveUpSecrets(wanted, nowMs),
          ...takeSecrets(wanted, nowMs),
          ...storeKeys(changed, wanted, nowMs, isCurrent),
          ...endWithoutBalance(wanted, posting, nowMs),
        ]),
    // Behind all others, which would be done no more then; the new keys have their ids by now.
    ...(lastLine === undefined ? [] : [addLines(linesOf({ changed, removed }, nowMs), nowMs, isCurrent)]),
  ];
}

/**
 * The condition that no declarations were stored since a line of the audit: another process may have compared the same keys
 * with the same declarations, and stores them once more.
 */
function noneDeclaredBehind(lastLine: number): Statement {
  return sql`NOT EXISTS (SELECT 1 FROM audit_lines WHERE audit_lines.number > ${lastLine} AND audit_lines.way = 'declared_keys')`;
}

const actor: Actor = { way: 'declared_keys', name: null, address: null };

/** A line for each key that is created, changed or revoked. */
function linesOf({ changed, removed }: DeclarationChanges, nowMs: number): readonly AuditEntry[] {
  const revokedAt = new Date(nowMs).toISOString();
  return [
    ...removed.map((name) =>
      entryOf('key.revoke', name, [{ field: 'revoked', before: null, after: revokedAt }]),
    ),
    ...changed.map(({ declared, before }) => {
      const action = before === undefined ? 'key.create' : 'key.change';
      return entryOf(
        action,
        declared.name,
        differencesOf(fieldsBefore(before), fieldsOfKey(declared, declared.hash)),
      );
    }),
  ];
}

function entryOf(action: AuditAction, subject: string, changes: readonly FieldChange[]): AuditEntry {
  return keyEntry(actor, action, null, changes, nameOf(subject));
}

function fieldsBefore(before: ChangedDeclaration['before']): Fields {
  if (before === undefined) return noFields;
  const { key, hash } = before;
  const revoked = key.revokedAtMs === null ? {} : { revoked: new Date(key.revokedAtMs).toISOString() };
  return fieldsOfKey(key, hash, revoked);
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
function removeDeclarations(names: readonly string[], nowMs: number, condition: Statement): Statement {
  const wanted = withWanted(
    { name: 'TEXT' },
    names.map((name) => [name]),
    condition,
  );
  return sql`${wanted}
    UPDATE api_keys SET revoked_at = coalesce(revoked_at, ${nowMs}) FROM wanted WHERE ${isNamed}`;
}

/** Takes other secrets than the declared ones from the keys of these names, which are in force from now on. */
function giveUpSecrets(wanted: Statement, nowMs: number): readonly Statement[] {
  return [
    rememberPrepaid(sql`${isNamed} AND api_keys.hash <> wanted.hash`, wanted, nowMs),
    sql`${wanted}
      UPDATE api_keys SET revoked_at = NULL,
        hash = CASE WHEN api_keys.hash = wanted.hash THEN api_keys.hash ELSE ${noHash} END
      FROM wanted WHERE ${isNamed}`,
  ];
}

/**
 * Takes secrets from the keys that have them now. An issued key becomes the declared one, and a key that is declared no
 * more (so that it is still revoked at this step) gets the new name, unless there is a declared key of that name already:
 * then an issued key is revoked, since one secret can't stand for two keys. A revoked issued key keeps its secret, and
 * the unit fails: whether such a secret may be declared is decided before.
 */
function takeSecrets(wanted: Statement, nowMs: number): readonly Statement[] {
  return [
    sql`${wanted}
      UPDATE api_keys SET name = wanted.name, declared = 1 FROM wanted
      WHERE api_keys.hash = wanted.hash AND declared = 0 AND revoked_at IS NULL AND ${isNew}
      RETURNING api_keys.name AS adopted`,
    sql`${wanted}
      UPDATE api_keys SET name = wanted.name, revoked_at = NULL FROM wanted
      WHERE api_keys.hash = wanted.hash AND declared = 1 AND revoked_at IS NOT NULL AND ${isNew}
      RETURNING api_keys.name AS renamed`,
    rememberPrepaid(
      sql`api_keys.hash = wanted.hash AND (declared = 0 OR api_keys.name <> wanted.name)`,
      wanted,
      nowMs,
    ),
    sql`${wanted}
      UPDATE api_keys SET revoked_at = ${nowMs}, hash = ${noHash} FROM wanted
      WHERE api_keys.hash = wanted.hash AND declared = 0 AND revoked_at IS NULL`,
    sql`${wanted}
      UPDATE api_keys SET hash = ${noHash} FROM wanted
      WHERE api_keys.hash = wanted.hash AND declared = 1 AND api_keys.name <> wanted.name`,
    sql`${wanted}
      DELETE FROM old_secrets WHERE hash IN (SELECT hash FROM wanted)
        AND (SELECT balance FROM accounts WHERE accounts.key_id = old_secrets.key_id) IS NULL`,
  ];
}

/** Remembers the secrets of the keys that a condition finds, if they have a balance. The secrets themselves are not valid. */
function rememberPrepaid(condition: Statement, wanted: Statement, nowMs: number): Statement {
  return sql`${wanted}
    INSERT INTO old_secrets (hash, key_id, valid_until)
    SELECT api_keys.hash, api_keys.id, CAST(${nowMs} AS BIGINT)
    FROM wanted JOIN api_keys ON ${condition} JOIN accounts ON accounts.key_id = api_keys.id
    WHERE balance IS NOT NULL AND api_keys.hash <> ${noHash}
    ON CONFLICT (hash) DO NOTHING`;
}

/** Changes the keys of these names, or inserts them with accounts that have no balance yet. */
function storeKeys(
  changed: readonly ChangedDeclaration[],
  wanted: Statement,
  nowMs: number,
  condition: Statement,
): readonly Statement[] {
  const names = raw(settingNames.join(', '));
  const keys = withWanted(
    { ...secretColumns, id: 'TEXT', spare_id: 'TEXT', ...settingTypes },
    changed.map(({ id, spareId, declared }) => [
      declared.name,
      declared.hash,
      id,
      spareId,
      ...settingsOf(declared),
    ]),
    condition,
  );
  return [
    sql`${keys}
      UPDATE api_keys SET hash = wanted.hash, ${raw(settingNames.map((name) => `${name} = wanted.${name}`).join(', '))}
      FROM wanted WHERE ${isNamed}`,
    sql`${keys}
      INSERT INTO api_keys (id, hash, created_at, name, ${names}, declared)
      SELECT CASE WHEN EXISTS (SELECT 1 FROM api_keys WHERE api_keys.id = wanted.id) THEN spare_id ELSE id END,
        hash, CAST(${nowMs} AS BIGINT), name, ${names}, 1
      FROM wanted WHERE ${isNew}`,
    sql`${wanted}
      INSERT INTO accounts (key_id) SELECT api_keys.id FROM wanted JOIN api_keys ON ${isNamed} WHERE true
      ON CONFLICT (key_id) DO NOTHING`,
  ];
}

/**
 * Gives keys whose secrets were prepaid a balance of 0, if they have none: their clients pay from the next credit on, and
 * can't spend without one. What such a key spent before is covered, as by a first credit.
 */
function endWithoutBalance(wanted: Statement, posting: string, nowMs: number): readonly Statement[] {
  const isPrepaid = sql`key_id IN (SELECT api_keys.id FROM wanted JOIN api_keys ON ${isNamed}
    JOIN old_secrets ON old_secrets.hash = wanted.hash)`;
  return [
    // Locked first, as by every unit that moves money.
    sql`${wanted} UPDATE accounts SET held = held WHERE ${isPrepaid}`,
    sql`${wanted}
      INSERT INTO ledger_rows (key_id, number, created_at, kind, delta, reference, posting)
      SELECT key_id, postings + 1, CAST(${nowMs} AS BIGINT), 'credit', spent, ${coveringReference}, ${posting} FROM accounts
      WHERE spent > 0 AND balance IS NULL AND ${isPrepaid}`,
    sql`${wanted}
      UPDATE accounts SET balance = 0, postings = postings + CASE WHEN spent > 0 THEN 1 ELSE 0 END
      WHERE balance IS NULL AND ${isPrepaid}
      RETURNING (SELECT name FROM api_keys WHERE api_keys.id = accounts.key_id) AS unfunded`,
    sql`${wanted} DELETE FROM old_secrets WHERE hash IN (SELECT hash FROM wanted)`,
  ];
}
