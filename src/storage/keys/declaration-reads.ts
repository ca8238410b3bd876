import { maxDeclaredKeys } from '../../domain/keys/declared-key.ts';
import type { DeclaredKey, StoredDeclarations } from '../../domain/keys/declared-key.ts';
import { placesOf } from '../engine.ts';
import type { Results, Statement } from '../engine.ts';
import { columns, readKey } from './key-statements.ts';

const selectDeclaration = `SELECT ${columns}, hash FROM api_keys JOIN accounts ON accounts.key_id = id WHERE declared = 1`;

/**
 * Reads what declared keys have to be compared with: the declared keys in force, the revoked ones of the same names, and
 * which of the declared secrets were retired. Names of earlier configs are not read, however many there were.
 */
export function selectDeclarations(declared: readonly DeclaredKey[], nowMs: number): readonly Statement[] {
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
export function readDeclarations([current = [], revoked = [], retired = []]: Results): StoredDeclarations {
  return {
    keys: [...current, ...revoked].map((row) => ({ key: readKey(row), hash: String(row['hash']) })),
    retired: new Set(retired.map(({ hash }) => String(hash))),
  };
}
