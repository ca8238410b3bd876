import { keyEntry } from '../../domain/audit/audit-line.ts';
import type { Actor, AuditAction } from '../../domain/audit/audit-line.ts';
import { differencesOf, fieldsOfKey, fingerprintOfHash } from '../../domain/audit/differences.ts';
import type { FieldChange } from '../../domain/audit/differences.ts';
import type { ApiKey } from '../../domain/keys/api-key.ts';
import { changeKey } from '../../domain/keys/change-key.ts';
import type { KeyStore } from '../../domain/ports/key-store.ts';
import { StorageError } from '../../domain/storage-refusal.ts';
import { addLines } from '../audit/audit-lines.ts';
import type { Engine, Row, Statement } from '../engine.ts';
import { joined, lookUpRows, raw, sql } from '../statements.ts';
import { assignmentsOf, columns, isUnchanged, readKey } from './stored-key.ts';

/** Changes stored keys over any engine, each with its line in the audit. */
export function createKeyChanges(
  engine: Pick<Engine, 'run' | 'lookUp'>,
  nowMs: () => number,
): Pick<KeyStore, 'updateKey' | 'revokeKey' | 'rotateKey'> {
  const alter = (id: string, action: AuditAction, by: Actor | undefined, describe: Describe) =>
    alterKey(engine, id, describe, (changes, isThere) =>
      by === undefined ? [] : [addLines([keyEntry(by, action, id, changes)], nowMs(), isThere)],
    );
  return {
    updateKey: (id, changes, by) =>
      alter(id, 'key.change', by, (row) => {
        const [before, hash] = [readKey(row), String(row['hash'])];
        const after = changeKey(before, changes);
        return {
          changes: differencesOf(fieldsOfKey(before, hash), fieldsOfKey(after, hash)),
          assignments: assignmentsOf(after),
        };
      }),
    revokeKey: (id, revokedAtMs, by) =>
      alter(id, 'key.revoke', by, (row) => ({
        changes:
          row['revoked_at'] === null ? [{ field: 'revoked', before: null, after: isoTime(revokedAtMs) }] : [],
        assignments: [sql`revoked_at = ${revokedAtMs}`],
      })),
    rotateKey: (id, hash, oldValidUntilMs, by) =>
      alter(id, 'key.rotate', by, (row) => ({
        changes: [
          { field: 'secret', before: fingerprintOfHash(String(row['hash'])), after: fingerprintOfHash(hash) },
          { field: 'oldSecretUntil', before: null, after: isoTime(oldValidUntilMs) },
        ],
        assignments: [sql`hash = ${hash}`],
        first: keepSecret(row, oldValidUntilMs),
      })),
  };
}

function isoTime(atMs: number): string {
  return new Date(atMs).toISOString();
}

/** What becomes of a stored key: nothing without changes. */
interface Alteration {
  readonly changes: readonly FieldChange[];
  readonly assignments: readonly Statement[];
  /** What the unit does first, under a condition. */
  readonly first?: (condition: Statement) => readonly Statement[];
}

type Describe = (row: Row) => Alteration;

/**
 * How often a change is made again of a key that others change at the same time: one of them is made each time, and the
 * operators' listener of a node takes fewer at once.
 */
const maxRepeats = 100;

/**
 * Changes a key in one unit, which does nothing where the key is not as it was read: then it is read again. So what a line says
 * was before is what was before, and changes made at the same time undo nothing of each other. A declared key stays as it is.
 */
async function alterKey(
  engine: Pick<Engine, 'run' | 'lookUp'>,
  id: string,
  describe: Describe,
  linesOf: (changes: readonly FieldChange[], isThere: Statement) => readonly Statement[],
): Promise<ApiKey | null> {
  for (let repeats = 0; repeats < maxRepeats; repeats++) {
    const [row] = await lookUpRows(engine, selectStored(id));
    if (row === undefined) return null;
    const key = readKey(row);
    if (key.isDeclared) return key;
    const { changes, assignments, first = () => [] } = describe(row);
    if (changes.length === 0) return key;
    const isSame = isUnchanged(row);
    const isThere = sql`EXISTS (SELECT 1 FROM api_keys WHERE ${isSame})`;
    const results = await engine.run([
      ...linesOf(changes, isThere),
      ...first(isThere),
      sql`UPDATE api_keys SET ${joined(assignments, ', ')} WHERE ${isSame} RETURNING id`,
      selectStored(id),
    ]);
    const [changed = [], [read] = []] = results.slice(-2);
    if (changed.length > 0 && read !== undefined) return readKey(read);
  }
  throw new StorageError(`the key ${id} is changed by others all the time`, 'locked');
}

/** Keeps the secret of a key that gets another one valid until a time, and earlier ones no longer than that. */
function keepSecret({ id = null, hash = null }: Row, validUntil: number) {
  return (condition: Statement): readonly Statement[] => [
    sql`INSERT INTO old_secrets (hash, key_id, valid_until)
      SELECT CAST(${hash} AS TEXT), CAST(${id} AS TEXT), CAST(${validUntil} AS BIGINT) WHERE ${condition}`,
    sql`UPDATE old_secrets SET valid_until = ${validUntil}
      WHERE valid_until > ${validUntil} AND key_id = ${id} AND ${condition}`,
  ];
}

/** All that is stored of a key. */
function selectStored(id: string): Statement {
  return sql`SELECT ${raw(columns)}, hash FROM api_keys JOIN accounts ON accounts.key_id = id WHERE id = ${id}`;
}
