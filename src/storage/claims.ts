import type { Claim, ClaimEnd, ClaimName, Claims, StoredClaim } from '../domain/ports/claims.ts';
import { takeValues, typesOf } from './engine.ts';
import type { Engine, FixedUnit, Row, Statement, Taken } from './engine.ts';
import { hasNoLease } from './leases.ts';
import type { Owner } from './leases.ts';
import { isThisRequest, requestKey } from './records/request-key.ts';
import { lookUpRows, raw, sql } from './statements.ts';

/** How many ended claims are removed in one unit. */
const removedAtOnce = 1_000;

/** Keeps claims over any engine, under the lease of an owner. */
export function createClaims(engine: Engine, owner: Owner): Claims {
  return {
    async findClaim(claim) {
      const [row] = await lookUpRows(engine, selectClaim(claim));
      return row === undefined ? null : readClaim(row, owner.id);
    },
    async beginClaim(claim, requestId) {
      const values = [owner.id, ...takeValues(begun, { ...claim, requestId })];
      return (await engine.call(beginClaim, values)) !== null;
    },
    async freeClaim(claim, requestId) {
      await engine.call(freeClaim, [owner.id, ...takeValues(named, { ...claim, requestId })]);
    },
    async removeClaims(beforeMs) {
      let removed = 0;
      for (;;) {
        const [rows = []] = await engine.run([deleteEnded(beforeMs)]);
        removed += rows.length;
        if (rows.length < removedAtOnce) return removed;
      }
    },
  };
}

/** What a unit takes of a claim, and of the request that runs it. */
const named: Taken<ClaimName & { readonly requestId: string }> = [
  ['key_id', 'text', ({ keyId }) => keyId],
  ['claim_name', 'text', ({ name }) => name],
  ...requestKey,
];

const begun: Taken<Claim & { readonly requestId: string }> = [
  ...named,
  ['request', 'text', ({ request }) => request],
];

/** Finds the claim of a fixed unit. */
const isThisClaim = 'key_id = :key_id AND name = unhex(:claim_name)';

/** Finds the claim of a fixed unit, if it is the request of the unit that runs it, or has run it. */
export const isClaimOfRequest = `${isThisClaim} AND ${isThisRequest}`;

/**
 * The account is locked first, as by settlements: one that has found its claim would charge for it although the claim is
 * given to another request before the commit.
 */
const locks: FixedUnit['locks'] = [{ table: 'accounts', where: 'key_id = :key_id' }];

/**
 * Has a request run a claim: one that nothing is stored of, or whose owner has no lease. To begin it again for the same
 * request changes nothing. Its owner has to have a lease, or nothing would free it.
 */
export const beginClaim: FixedUnit<'begin_claim'> = {
  name: 'begin_claim',
  takes: { owner: 'text', ...typesOf(begun) },
  spreadBy: 'key_id',
  mayBeForgotten: false,
  locks,
  preparations: [],
  decisions: [
    `INSERT INTO claim_rows (key_id, name, request, created_at, tail, owner)
     SELECT :key_id, unhex(:claim_name), unhex(:request), CAST(:created_at AS BIGINT), unhex(:tail), id
     FROM owners WHERE id = :owner
     ON CONFLICT (key_id, name) DO UPDATE SET request = excluded.request, created_at = excluded.created_at,
       tail = excluded.tail, owner = excluded.owner
     WHERE claim_rows.ended_at IS NULL AND (claim_rows.created_at = excluded.created_at AND claim_rows.tail = excluded.tail
       OR NOT EXISTS (SELECT 1 FROM owners WHERE owners.id = claim_rows.owner))
     RETURNING 1 AS has_claim`,
  ],
  decided: { has_claim: 'bigint' },
  changes: [],
  columns: ['has_claim'],
};

/** Frees a claim that a request of this owner runs. */
export const freeClaim: FixedUnit<'free_claim'> = {
  name: 'free_claim',
  takes: { owner: 'text', ...typesOf(named) },
  spreadBy: 'key_id',
  // The owner frees it again, or loses its lease.
  mayBeForgotten: true,
  locks,
  preparations: [],
  decisions: [
    `DELETE FROM claim_rows WHERE ${isClaimOfRequest} AND owner = :owner AND ended_at IS NULL RETURNING 1 AS freed`,
  ],
  decided: { freed: 'bigint' },
  changes: [],
  columns: ['freed'],
};

/** What the settlement of a request takes of the claim that it ends. */
export const endedClaim: Taken<ClaimEnd> = [
  ['claim_name', 'text', ({ name }) => name],
  ['frees_claim', 'bigint', ({ isFreed }) => (isFreed ? 1 : 0)],
];

/** What the settlement of a request changes of its claim. It keeps its owner, which has the answer. */
export const claimChanges: readonly string[] = [
  `DELETE FROM claim_rows WHERE ${isClaimOfRequest} AND CAST(:frees_claim AS BIGINT) = 1`,
  `UPDATE claim_rows SET ended_at = CAST(:settled_at AS BIGINT)
   WHERE ${isClaimOfRequest} AND CAST(:frees_claim AS BIGINT) = 0`,
];

/**
 * The condition on a claim that it runs. One that has ended keeps its owner, and was charged: freed with the lease of its owner,
 * it would run and be charged again. That a running one has an owner lets the index of those be searched.
 */
export const isRunningClaim = 'ended_at IS NULL AND owner IS NOT NULL';

/** Locks the accounts of the running claims under a condition, as `freeClaims` has it. */
export function lockClaimed(condition: Statement): Statement {
  return sql`UPDATE accounts SET held = held
    WHERE key_id IN (SELECT key_id FROM claim_rows WHERE ${raw(isRunningClaim)} AND (${condition}))`;
}

/** Frees the running claims under a condition on their owners, or on the requests that run them. */
export function freeClaims(condition: Statement): Statement {
  return sql`DELETE FROM claim_rows WHERE ${raw(isRunningClaim)} AND (${condition})`;
}

function selectClaim({ keyId, name }: ClaimName): Statement {
  return sql`SELECT request, request_id, owner, ended_at,
      CASE WHEN ended_at IS NULL AND ${raw(hasNoLease)} THEN 1 ELSE 0 END AS is_free
    FROM claims WHERE key_id = ${keyId} AND name = unhex(${name})`;
}

function deleteEnded(beforeMs: number): Statement {
  return sql`DELETE FROM claim_rows WHERE (key_id, name) IN
    (SELECT key_id, name FROM claim_rows WHERE ended_at < ${beforeMs} LIMIT ${removedAtOnce}) RETURNING key_id`;
}

function readClaim(row: Row, own: string): StoredClaim {
  const { request, request_id: requestId, owner, ended_at: endedAt, is_free: isFree } = row;
  const running = owner === own ? 'own' : Number(isFree) === 1 ? 'free' : 'running';
  return {
    request: String(request),
    requestId: String(requestId),
    owner: owner === null || owner === undefined ? null : String(owner),
    state: endedAt === null ? running : 'ended',
  };
}
