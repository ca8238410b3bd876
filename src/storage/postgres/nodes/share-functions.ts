import type { RoomLimit } from '../../../domain/ports/room-shares.ts';
import { minuteMs } from '../../../domain/rooms/minute-window.ts';
import { defineFunction, searchByIndex, withoutFlush } from '../database-function.ts';

/** The first key of the advisory locks under which the shares of an upstream are changed; the second one is its name's hash. */
const shareLock = 7_483_913;

/** How much later than its lease was found ended a process may have sent its last request, in milliseconds. */
const lateMs = 5_000;

/** How long the shares of a minute of an ended process are kept, in milliseconds: what it started last counts so long. */
const keptMinuteMs = minuteMs + lateMs;

/** After which time another process gets the remainder of a limit that can't be divided evenly, in milliseconds. */
const roundMs = 5_000;

/** The limit whose shares end with the lease of their process, as its requests do. */
const inProgress: RoomLimit = 'maxInFlight';

/**
 * The fair part of one of some amounts, which are served from a capacity: none gets more than itself, and what one leaves is the
 * others'. `$1` are the amounts, `$2` is the capacity, `$3` the place of the one, counted from 1. A remainder
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
      SELECT count(*) INTO rank FROM unnest($1) WITH ORDINALITY AS one (amount, place)
      WHERE one.amount > level AND one.place < $3;
      RETURN level + CASE WHEN (rank + $4) % above < rest - level * above THEN 1 ELSE 0 END;
    END`,
});

/**
 * Forgets the shares of processes whose lease was ended: those of requests in progress at once, and those of a minute when
 * what was started with them counts no longer. Rows that another session works on are left to it.
 */
const freeLostShares = defineFunction({
  name: 'free_lost_shares',
  types: [],
  returns: 'void',
  settings: searchByIndex,
  body: `
    DECLARE
      lost room_shares;
      now_at BIGINT := now_ms();
    BEGIN
      FOR lost IN
        SELECT * FROM room_shares WHERE NOT EXISTS (SELECT 1 FROM owners WHERE owners.id = room_shares.owner)
        FOR UPDATE SKIP LOCKED
      LOOP
        IF lost.limit_name = '${inProgress}' OR lost.lost_at <= now_at - ${keptMinuteMs} THEN
          DELETE FROM room_shares
          WHERE (upstream, limit_name, owner) = (lost.upstream, lost.limit_name, lost.owner);
        ELSIF lost.lost_at IS NULL OR lost.lost_at > now_at THEN
          -- Also where the clock was set back, which would keep it for longer.
          UPDATE room_shares SET lost_at = now_at
          WHERE (upstream, limit_name, owner) = (lost.upstream, lost.limit_name, lost.owner);
        END IF;
      END LOOP;
    END`,
});

/** The fair part of a process in what all need, and in what is left beside that: of the limit `$1` `$2`, for owner `$3`. */
const targetOf = defineFunction({
  name: 'share_target',
  types: ['text', 'text', 'text', 'bigint'],
  returns: 'bigint',
  settings: searchByIndex,
  body: `
    DECLARE
      needed BIGINT[];
      beside BIGINT[];
      place BIGINT;
      total NUMERIC;
      round BIGINT := now_ms() / ${roundMs};
    BEGIN
      SELECT array_agg(least(needs, $4) ORDER BY owner),
        array_agg(greatest(0, least(wants, $4) - least(needs, $4)) ORDER BY owner),
        count(*) FILTER (WHERE owner <= $3), sum(least(needs, $4))
      INTO needed, beside, place, total
      FROM room_shares WHERE upstream = $1 AND limit_name = $2 AND lost_at IS NULL;
      IF total >= $4 THEN
        RETURN ${fairPart.called}(needed, $4, place, round);
      END IF;
      RETURN needed[place] + ${fairPart.called}(beside, CAST($4 - total AS BIGINT), place, round);
    END`,
});

/**
 * Settles the shares of owner `$1` by call number `$2`; `$3` has the demands in JSON. A share is set to what is kept, also
 * where the database has less, as after a crash or a failover that lost what it had granted: what a process uses is true.
 * Then it is raised to its target, as far as the shares of all others leave that. The upstreams are locked one after the
 * other, in the order of their hashes; a process that waits for one has the locks of those before it alone.
 */
export const settleShares = defineFunction({
  name: 'settle_shares',
  types: ['text', 'bigint', 'text'],
  returns: 'TABLE (of_upstream TEXT, of_limit TEXT, own_share BIGINT, own_target BIGINT)',
  settings: searchByIndex,
  body: `
    DECLARE
      asked RECORD;
      smallest BIGINT;
      lost BIGINT;
      others BIGINT;
      has_risen BOOLEAN := false;
    BEGIN
      IF NOT EXISTS (SELECT 1 FROM owners WHERE id = $1) THEN
        RETURN;
      END IF;
      FOR asked IN
        SELECT * FROM json_to_recordset(CAST($3 AS JSON))
          AS demand ("upstream" TEXT, "limit" TEXT, "most" BIGINT, "keeps" BIGINT, "needs" BIGINT, "wants" BIGINT)
        ORDER BY hashtext("upstream"), "upstream", "limit"
      LOOP
        PERFORM pg_advisory_xact_lock(${shareLock}, hashtext(asked.upstream));
        INSERT INTO room_shares AS own (upstream, limit_name, owner, turn, most, share, needs, wants)
        VALUES (asked.upstream, asked."limit", $1, $2, asked.most, asked.keeps, asked.needs, asked.wants)
        ON CONFLICT (upstream, limit_name, owner) DO UPDATE SET turn = excluded.turn, most = excluded.most,
          share = excluded.share, needs = excluded.needs, wants = excluded.wants
        WHERE own.turn < excluded.turn;
        -- A call that was overtaken by a later one: it would take back what that one was granted.
        CONTINUE WHEN NOT FOUND;
        SELECT min(most) FILTER (WHERE lost_at IS NULL), coalesce(sum(share) FILTER (WHERE lost_at IS NOT NULL), 0),
          coalesce(sum(share) FILTER (WHERE owner <> $1), 0)
        INTO smallest, lost, others
        FROM room_shares WHERE upstream = asked.upstream AND limit_name = asked."limit";
        of_upstream := asked.upstream;
        of_limit := asked."limit";
        own_target := ${targetOf.called}(asked.upstream, asked."limit", $1, greatest(0, smallest - lost));
        own_share := greatest(asked.keeps, least(own_target, smallest - others));
        IF own_share > asked.keeps THEN
          UPDATE room_shares SET share = own_share
          WHERE upstream = asked.upstream AND limit_name = asked."limit" AND owner = $1;
          has_risen := true;
        END IF;
        RETURN NEXT;
      END LOOP;
      -- Last, since it waits for nothing: a process whose lease has just been ended may wait for a row that this locks.
      PERFORM ${freeLostShares.called}();
      -- What was granted must not be forgotten by a crash, nor what others gave back before: that is flushed with it.
      IF NOT has_risen THEN
        ${withoutFlush}
      END IF;
    END`,
});

/** Every function, each behind those that it calls. */
export const shareFunctions = [fairPart, freeLostShares, targetOf, settleShares];
