import type { ApiKey } from '../../domain/keys/api-key.ts';
import type { KeyFilter, KeyState } from '../../domain/ports/key-store.ts';
import type { Statement } from '../engine.ts';
import { selectKey } from './key-statements.ts';

/** A condition on keys, with the values of its placeholders. */
type Condition = readonly [sql: string, ...values: Statement['values']];

/** A page of those keys that a filter wants, newest first, behind the key that has the time and the id of `before`. */
export function selectKeys(
  { search, state }: KeyFilter,
  limit: number,
  before: Pick<ApiKey, 'id' | 'createdAtMs'> | null,
  nowMs: number,
): Statement {
  const wanted: Condition[] = [];
  if (search !== undefined) wanted.push(hasText(search));
  if (state !== undefined) wanted.push(isIn(state, nowMs));
  if (before !== null) wanted.push(['(created_at, id) < (?, ?)', before.createdAtMs, before.id]);
  const where = wanted.length === 0 ? '' : ` WHERE ${wanted.map(([sql]) => sql).join(' AND ')}`;
  return {
    sql: `${selectKey}${where} ORDER BY created_at DESC, id DESC LIMIT ?`,
    values: [...wanted.flatMap(([, ...values]) => values), limit],
  };
}

/** Whether a key's name contains a text, or its id begins with it, in upper or lower case. */
function hasText(text: string): Condition {
  // LIKE reads `%` and `_` as wildcards: a search for `team_a` would also find `team-a`.
  const plain = text.replaceAll(/[\\%_]/g, String.raw`\$&`);
  const sql = String.raw`(lower(name) LIKE lower(?) ESCAPE '\' OR lower(id) LIKE lower(?) ESCAPE '\')`;
  return [sql, `%${plain}%`, `${plain}%`];
}

/** Whether a key is in a state now. A revoked key stays revoked when it expires. */
function isIn(state: KeyState, nowMs: number): Condition {
  if (state === 'revoked') return ['revoked_at IS NOT NULL'];
  if (state === 'expired') return ['revoked_at IS NULL AND expires_at <= ?', nowMs];
  return ['revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)', nowMs];
}
