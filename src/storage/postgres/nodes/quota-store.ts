import type { GrantedQuota, QuotaStore, UpstreamLimit } from '../../../domain/ports/quotas.ts';
import { minuteMs } from '../../../domain/upstream-limiter/minute-window.ts';
import type { Row } from '../../engine.ts';
import { defineFunction, withoutFlush } from '../database-function.ts';
import type { FunctionCaller } from '../database-function.ts';

/** The first key of the advisory locks under which the quotas of an upstream are changed; the second one is its name's hash. */
const quotaLock = 7_483_913;

/** How much later than its lease was found ended a process may have sent its last request, in milliseconds. */
const lateMs = 5_000;

/** How long the quotas of a minute of an ended process are kept, in milliseconds: what it started last counts so long. */
const keptMinuteMs = minuteMs + lateMs;

/** After which time another process gets the remainder of a limit that can't be divided evenly, in milliseconds. */
const roundMs = 5_000;

/** The limit whose quotas end with the lease of their process, as its requests do. */
const inProgress: UpstreamLimit = 'maxInFlight';

/**
 * The fair part of one of some amounts, which are served from a capacity: none gets more than itself, and what one leaves is the
 * others'. `$1` are the amounts, `$2` is the capacity, `$3` the position of the one, counted from 1. A remainder
 * goes to the next ones in each round `$4`: with a limit of one, every process gets its turn.
 */
const fairPart = defineFunction({
  name: 'fair_part',
  types: ['bigint[]', 'bigint', 'bigint', 'bigint'],
  returns: 'bigint',
  body: `
    DECLARE
      rest BIGINT := $2;
      above BIGINT := cardinality($1);
      level BIGINT := 0;
      amount BIGINT;
      rank BIGINT;
    BEGIN
      FOR amount IN SELECT one FROM unnest($1) AS one ORDER BY one LOOP
        level := rest / above;
        EXIT WHEN amount > level;
        rest := rest - amount;
        above := above - 1;
      END LOOP;
      IF above = 0 OR $1[$3] <= level THEN
        RETURN $1[$3];
      END IF;
      SELECT count(*) INTO rank FROM unnest($1) WITH ORDINALITY AS one (amount, nth)
      WHERE one.amount > level AND one.nth < $3;
      RETURN level + CASE WHEN (rank + $4) % above < rest - level * above THEN 1 ELSE 0 END;
    END`,
});

/**
 * Forgets the quotas of processes whose lease was ended: those of requests in progress at once, and those of a minute when
 * what was started with them counts no longer. Rows that another session works on are left to it.
 */
const freeLostQuotas = defineFunction({
  name: 'free_lost_quotas',
  types: [],
  returns: 'void',
  body: `
    DECLARE
      lost limit_quotas;
      now_at BIGINT := now_ms();
    BEGIN
      FOR lost IN
        SELECT * FROM limit_quotas WHERE NOT EXISTS (SELECT 1 FROM owners WHERE owners.id = limit_quotas.owner)
        FOR UPDATE SKIP LOCKED
      LOOP
        IF lost.limit_name = '${inProgress}' OR lost.lost_at <= now_at - ${keptMinuteMs} THEN
          DELETE FROM limit_quotas
          WHERE (upstream, limit_name, owner) = (lost.upstream, lost.limit_name, lost.owner);
        ELSIF lost.lost_at IS NULL OR lost.lost_at > now_at THEN
          -- Also where the clock was set back, which would keep it for longer.
          UPDATE limit_quotas SET lost_at = now_at
          WHERE (upstream, limit_name, owner) = (lost.upstream, lost.limit_name, lost.owner);
        END IF;
      END LOOP;
    END`,
});

/** The fair part of a process in what all need, and in what is left beside that: of the limit `$1` `$2`, for owner `$3`. */
const targetOf = defineFunction({
  name: 'quota_target',
  types: ['text', 'text', 'text', 'bigint'],
  returns: 'bigint',
  body: `
    DECLARE
      needed BIGINT[];
      beside BIGINT[];
      nth BIGINT;
      total NUMERIC;
      round BIGINT := now_ms() / ${roundMs};
    BEGIN
      SELECT array_agg(least(needs, $4) ORDER BY owner),
        array_agg(greatest(0, least(wants, $4) - least(needs, $4)) ORDER BY owner),
        count(*) FILTER (WHERE owner <= $3), sum(least(needs, $4))
      INTO needed, beside, nth, total
      FROM limit_quotas WHERE upstream = $1 AND limit_name = $2 AND lost_at IS NULL;
      IF total >= $4 THEN
        RETURN ${fairPart.called}(needed, $4, nth, round);
      END IF;
      RETURN needed[nth] + ${fairPart.called}(beside, CAST($4 - total AS BIGINT), nth, round);
    END`,
});

/**
 * Renews the quotas of owner `$1` by call number `$2`; `$3` has the demands in JSON. A quota is set to what is kept, also
 * where the database has less, as after a crash or a failover that lost what it had granted: what a process uses is true.
 * Then it is raised to its target, as far as the quotas of all others leave that. The upstreams are locked one after the
 * other, in the order of their hashes; a process that waits for one has the locks of those before it alone.
 */
const renewQuotas = defineFunction({
  name: 'renew_quotas',
  types: ['text', 'bigint', 'text'],
  returns: 'TABLE (of_upstream TEXT, of_limit TEXT, own_quota BIGINT, own_target BIGINT)',
  body: `
    DECLARE
      demanded RECORD;
      smallest BIGINT;
      lost BIGINT;
      others BIGINT;
      has_risen BOOLEAN := false;
    BEGIN
      IF NOT EXISTS (SELECT 1 FROM owners WHERE id = $1) THEN
        RETURN;
      END IF;
      FOR demanded IN
        SELECT * FROM json_to_recordset(CAST($3 AS JSON))
          AS demand ("upstream" TEXT, "limit" TEXT, "most" BIGINT, "keeps" BIGINT, "needs" BIGINT, "wants" BIGINT)
        ORDER BY hashtext("upstream"), "upstream", "limit"
      LOOP
        PERFORM pg_advisory_xact_lock(${quotaLock}, hashtext(demanded.upstream));
        INSERT INTO limit_quotas AS own (upstream, limit_name, owner, turn, most, quota, needs, wants)
        VALUES (demanded.upstream, demanded."limit", $1, $2, demanded.most, demanded.keeps, demanded.needs, demanded.wants)
        ON CONFLICT (upstream, limit_name, owner) DO UPDATE SET turn = excluded.turn, most = excluded.most,
          quota = excluded.quota, needs = excluded.needs, wants = excluded.wants
        WHERE own.turn < excluded.turn;
        -- A call that was overtaken by a later one: it would take back what that one was granted.
        CONTINUE WHEN NOT FOUND;
        SELECT min(most) FILTER (WHERE lost_at IS NULL), coalesce(sum(quota) FILTER (WHERE lost_at IS NOT NULL), 0),
          coalesce(sum(quota) FILTER (WHERE owner <> $1), 0)
        INTO smallest, lost, others
        FROM limit_quotas WHERE upstream = demanded.upstream AND limit_name = demanded."limit";
        of_upstream := demanded.upstream;
        of_limit := demanded."limit";
        own_target := ${targetOf.called}(demanded.upstream, demanded."limit", $1, greatest(0, smallest - lost));
        own_quota := greatest(demanded.keeps, least(own_target, smallest - others));
        IF own_quota > demanded.keeps THEN
          UPDATE limit_quotas SET quota = own_quota
          WHERE upstream = demanded.upstream AND limit_name = demanded."limit" AND owner = $1;
          has_risen := true;
        END IF;
        RETURN NEXT;
      END LOOP;
      -- Last, since it waits for nothing: a process whose lease has just been ended may wait for a row that this locks.
      PERFORM ${freeLostQuotas.called}();
      -- What was granted must not be forgotten by a crash, nor what others gave back before: that is flushed with it.
      IF NOT has_risen THEN
        ${withoutFlush}
      END IF;
    END`,
});

/** Every function, each behind those that it calls. */
export const quotaFunctions = [fairPart, freeLostQuotas, targetOf, renewQuotas];

/** Keeps the quotas of upstreams' limits in PostgreSQL. `owner` is the id under which this process has its lease. */
export function createQuotaStore(engine: FunctionCaller, owner: () => string): QuotaStore {
  return {
    owner,
    async renew(turn, demands) {
      const values = [owner(), turn, JSON.stringify(demands)];
      return (await engine.callFunction(renewQuotas, owner(), values)).map(readGranted);
    },
  };
}

function readGranted(row: Row): GrantedQuota {
  return {
    upstream: String(row['of_upstream']),
    limit: row['of_limit'] as UpstreamLimit,
    quota: Number(row['own_quota']),
    target: Number(row['own_target']),
  };
}
