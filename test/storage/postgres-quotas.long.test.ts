import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { GrantedQuota, QuotaDemand } from '../../src/domain/ports/quotas.ts';
import { createQuotaStore } from '../../src/storage/postgres/nodes/quota-store.ts';
import { openTimedPostgres } from '../support/timed-postgres.ts';
import { propertyRun } from '../support/property-run.ts';
import { memoryDatabase, playQuotas, quotaHistory } from '../support/quota-histories.ts';
import type { QuotaDatabase } from '../support/quota-world.ts';
import { postgresAbsence } from '../support/test-postgres.ts';

const absent = postgresAbsence === null ? '' : ` (${postgresAbsence})`;

describe.skipIf(postgresAbsence !== null)(`quotas of the limits of upstreams in PostgreSQL${absent}`, () => {
  let engine: Awaited<ReturnType<typeof openTimedPostgres>>['engine'];
  beforeAll(async () => {
    ({ engine } = await openTimedPostgres());
  });
  afterAll(() => engine.close());
  const run = (sql: string, ...values: readonly (string | number)[]) => engine.run([{ sql, values }]);

  /** No quotas, and no leases. */
  async function emptied(): Promise<QuotaDatabase> {
    await run('TRUNCATE limit_quotas, owners');
    await run('UPDATE test_time SET ms = 0');
    let [setMs, nowMs] = [0, 0];
    let timed: Promise<unknown> = Promise.resolve();
    return {
      async renew(owner, turn, demands) {
        if (setMs !== nowMs) timed = run('UPDATE test_time SET ms = ?', nowMs);
        setMs = nowMs;
        await timed;
        return createQuotaStore(engine, () => owner).renew(turn, demands);
      },
      async setOwners(owners) {
        const named = JSON.stringify([...owners]);
        await run(
          'DELETE FROM owners WHERE id NOT IN (SELECT json_array_elements_text(CAST(? AS JSON)))',
          named,
        );
        await run(
          `INSERT INTO owners (id, since, renewed_at) SELECT id, 0, 0 FROM json_array_elements_text(CAST(? AS JSON)) AS id
           ON CONFLICT (id) DO NOTHING`,
          named,
        );
      },
      async setTime(ms) {
        nowMs = ms;
      },
    };
  }

  test('are settled as in plain lists, and never add up to more than the limit, in random histories', async () => {
    const answers = (granted: readonly GrantedQuota[]) =>
      granted.toSorted((a, b) => (a.limit < b.limit ? -1 : 1));
    await fc.assert(
      fc.asyncProperty(quotaHistory(25), async (history) => {
        const [stored, lists] = [await emptied(), memoryDatabase()];
        const differences: unknown[] = [];
        let last: Promise<unknown> = Promise.resolve();
        const database: QuotaDatabase = {
          renew(...call) {
            // One call at a time, so that both get them in the same order.
            const both = last.then(async () => {
              const found = answers(await stored.renew(...call));
              const expected = answers(await lists.renew(...call));
              if (JSON.stringify(found) !== JSON.stringify(expected))
                differences.push({ call, found, expected });
              return found;
            });
            last = both.catch(() => {});
            return both;
          },
          setOwners: async (owners) =>
            void (await Promise.all([stored.setOwners(owners), lists.setOwners(owners)])),
          setTime: async (ms) => void (await Promise.all([stored.setTime(ms), lists.setTime(ms)])),
        };
        const played = await playQuotas(database, history);
        expect({ ...played, differences }).toEqual({ excesses: [], kept: [], missing: [], differences: [] });
      }),
      propertyRun(2),
    );
  });

  test('are never granted twice to processes that ask at the same time', async () => {
    const database = await emptied();
    const owners = Array.from({ length: 8 }, (_, at) => `owner-${at}`);
    await database.setOwners(new Set(owners));
    const most = { a: 5, b: 3 };
    const kept = new Map<string, number>();
    for (let turn = 1; turn <= 20; turn++) {
      const granted = await Promise.all(
        owners.map((owner, at) => {
          const demands = Object.entries(most).map(([upstream, limit]): QuotaDemand => {
            // Each gives back all that it has in turn, and wants more in all other rounds.
            const keeps = (turn + at) % 3 === 0 ? 0 : (kept.get(`${owner} ${upstream}`) ?? 0);
            return { upstream, limit: 'maxInFlight', most: limit, keeps, needs: limit, wants: limit };
          });
          return database.renew(owner, turn, at % 2 === 0 ? demands : demands.toReversed());
        }),
      );
      for (const [at, quotas] of granted.entries())
        for (const { upstream, quota } of quotas) kept.set(`${owners[at]} ${upstream}`, quota);
      const [rows = []] = await run(
        'SELECT upstream, sum(quota) AS total FROM limit_quotas GROUP BY upstream',
      );
      for (const { upstream, total } of rows)
        expect(Number(total)).toBeLessThanOrEqual(most[upstream as keyof typeof most]);
    }
  });

  test('of an ended process are free at once, and those of a minute when what it started counts no longer', async () => {
    const database = await emptied();
    await database.setOwners(new Set(['a', 'b']));
    const inProgress = {
      upstream: 'up',
      limit: 'maxInFlight',
      most: 4,
      keeps: 0,
      needs: 4,
      wants: 4,
    } as const;
    const starts = { ...inProgress, limit: 'requestsPerMinute', most: 10, needs: 6, wants: 6 } as const;
    await database.renew('a', 1, [inProgress, starts]);
    await database.setOwners(new Set(['b']));
    let [turn, kept] = [0, [0, 0]];
    const settledAt = async (ms: number): Promise<readonly GrantedQuota[]> => {
      await database.setTime(ms);
      const [first = 0, second = 0] = kept;
      const granted = await database.renew('b', ++turn, [
        { ...inProgress, keeps: first },
        { ...starts, keeps: second, needs: 10, wants: 10 },
      ]);
      kept = granted.map(({ quota }) => quota);
      return granted;
    };
    expect(await settledAt(1_000)).toMatchObject([{ quota: 0 }, { quota: 4 }]);
    expect(await settledAt(2_000)).toMatchObject([{ quota: 4 }, { quota: 4, target: 4 }]);
    await settledAt(65_000);
    expect(await settledAt(65_900)).toMatchObject([{ quota: 4 }, { quota: 4 }]);
    await settledAt(66_100);
    expect(await settledAt(66_200)).toMatchObject([{ quota: 4 }, { quota: 10, target: 10 }]);
  });

  test('go by the smallest limit, where processes have different ones', async () => {
    const database = await emptied();
    await database.setOwners(new Set(['a', 'b']));
    let turn = 0;
    const renew = async (owner: string, most: number, keeps: number): Promise<unknown> => {
      const demand = { upstream: 'up', limit: 'maxInFlight', most, keeps, needs: most, wants: most } as const;
      const [granted] = await database.renew(owner, ++turn, [demand]);
      return [granted?.quota, granted?.target];
    };
    expect(await renew('a', 6, 0)).toEqual([6, 6]);
    expect(await renew('b', 4, 0)).toEqual([0, 2]);
    expect(await renew('a', 6, 6)).toEqual([6, 2]);
    expect(await renew('a', 6, 2)).toEqual([2, 2]);
    expect(await renew('b', 4, 0)).toEqual([2, 2]);
  });

  test('are counted anew by what each process says, where the database has lost them', async () => {
    const database = await emptied();
    await database.setOwners(new Set(['a', 'b']));
    const demand = { upstream: 'up', limit: 'maxInFlight', most: 4, keeps: 0, needs: 3, wants: 3 } as const;
    expect(await database.renew('a', 1, [demand])).toEqual([
      { upstream: 'up', limit: 'maxInFlight', quota: 3, target: 3 },
    ]);
    await run('TRUNCATE limit_quotas');
    expect(await database.renew('a', 2, [{ ...demand, keeps: 3 }])).toMatchObject([{ quota: 3 }]);
    expect(await database.renew('b', 1, [demand])).toMatchObject([{ quota: 1, target: 2 }]);
    // What comes behind a later call, and from a process without a lease, changes nothing.
    expect(await database.renew('a', 1, [demand])).toEqual([]);
    expect(await database.renew('c', 1, [demand])).toEqual([]);
    const [rows] = await run('SELECT owner, quota FROM limit_quotas ORDER BY owner');
    expect(rows).toEqual([
      { owner: 'a', quota: 3 },
      { owner: 'b', quota: 1 },
    ]);
  });
});
