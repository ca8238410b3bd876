import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { termsOf } from '../../src/domain/budgets/budget.ts';
import type { Budget } from '../../src/domain/budgets/budget.ts';
import { writeEvent } from '../../src/domain/events.ts';
import type { RecordBeginning } from '../../src/domain/money/consumption.ts';
import { groupIdOf } from '../../src/domain/limits/groups.ts';
import { maxWarningLevels } from '../../src/shared/max-warning-levels.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createDeliveries } from '../../src/storage/outbox/deliveries.ts';
import { createOutbox } from '../../src/storage/outbox/outbox.ts';
import { propertyRun } from '../support/property-run.ts';
import { say } from './engine.ts';
import { idOf, joinStore, key, opened, settled } from './store.ts';

const dayMs = 86_400_000;
const noonMs = Date.parse('2026-11-23T12:00:00Z');

/** 1,000 nano-USD a day, with events at a half, four fifths, and the whole of it. */
const daily: Budget = {
  amountNanos: 1_000,
  per: 'day',
  timeZone: 'UTC',
  warnAt: [500, 800, 1_000],
  raise: null,
};

/** Whose budgets a request counts in: the settings that are in force when it begins, and none for one without. */
interface Budgets {
  readonly own?: Budget;
  readonly shared?: Budget;
}

/** The events of budgets that reach a level, over every engine. */
export function describeBudgetEvents(name: string, open: () => Promise<Engine>): void {
  describe(`${name}: events of budgets`, () => {
    let engine: Engine;
    let keys = 0;
    beforeAll(async () => {
      engine = await open();
    });
    afterAll(() => engine.close());

    /** A key of a group, both of this test alone, and what is in the outbox of theirs. */
    const setUp = async (budgetLevels = true) => {
      const [keyId, group] = [`payer_${++keys}`, `group-${keys}`];
      const store = joinStore(engine);
      await createOutbox(engine, () => `id${++keys}`).storeSettings({ lowBalanceNanos: null, budgetLevels });
      await store.createKey({ ...key, id: keyId, name: `"O'Neil" ${keyId}`, hasBalance: false }, keyId, null);
      let requests = 0;
      const begin = async (atMs: number, { own, shared }: Budgets) => {
        const budgets = [
          ...(own === undefined ? [] : [termsOf('key', keyId, own, atMs)]),
          ...(shared === undefined ? [] : [termsOf('group', groupIdOf(group), shared, atMs)]),
        ];
        const requestId = idOf(`${keyId} ${++requests}`, atMs);
        const { requestId: _id, hold, ...rest } = { ...opened(''), keyId };
        await store.open({ ...rest, requestId, hold, budgets });
        const counted = budgets.map((budget) => Object.assign({}, budget, { holdNanos: 0 }));
        const begun: RecordBeginning = { ...rest, holdNanos: 0, budgets: counted };
        return { settle: (nanos: number) => store.settle({ ...settled('', nanos), requestId, begun }) };
      };
      /** Makes requests that are charged, one after the other. */
      const charge = async (budgets: Budgets, ...charges: readonly number[]): Promise<void> => {
        for (const nanos of charges) await (await begin(noonMs, budgets)).settle(nanos);
      };
      const rows = async () =>
        (
          await engine.read([
            say(
              'SELECT name, subject, data FROM outbox WHERE subject LIKE ? OR subject LIKE ? ORDER BY position, name',
              `budget:${keyId} %`,
              `budget:${groupIdOf(group)} %`,
            ),
          ])
        ).flat();
      /** Whose budget reached which level with which sum, in the order of the levels. */
      const levels = async () =>
        (await rows()).map((row) => {
          const {
            budget,
            level,
            spent_nanos: spent,
          } = JSON.parse(String(row['data'])) as Record<string, unknown>;
          return [String(budget).startsWith('group:') ? 'group' : 'key', level, spent];
        });
      return { keyId, group, store, begin, charge, rows, levels };
    };

    test('come once for each level and period, with the charge that reached it', async () => {
      const { charge, levels } = await setUp();
      await charge({ own: daily }, 499);
      expect(await levels()).toEqual([]);
      await charge({ own: daily }, 1, 100, 199);
      expect(await levels()).toEqual([['key', 500, 500]]);
      await charge({ own: daily }, 1, 199, 1, 500);
      expect(await levels()).toEqual([
        ['key', 500, 500],
        ['key', 800, 800],
        ['key', 1_000, 1_000],
      ]);
    });

    test('come for the highest of several levels that one charge reaches', async () => {
      const { charge, levels } = await setUp();
      await charge({ own: daily }, 850);
      await charge({ own: daily }, 400);
      expect(await levels()).toEqual([
        ['key', 800, 850],
        ['key', 1_000, 1_250],
      ]);
    });

    test('come for the budget of a key and for that of its group, each by its own levels', async () => {
      const { charge, levels } = await setUp();
      const shared: Budget = { ...daily, amountNanos: 2_000, per: 'month', warnAt: [250] };
      await charge({ own: daily, shared }, 499, 1);
      await charge({ shared }, 1_500);
      expect(await levels()).toEqual([
        ['group', 250, 500],
        ['key', 500, 500],
      ]);
    });

    test('say which budget it is, as its key is named by then, or by the name of its group', async () => {
      const { keyId, group, store, charge } = await setUp();
      const shared: Budget = { ...daily, per: 'month', timeZone: 'Europe/Berlin', warnAt: [805] };
      await charge({ own: daily, shared }, 805);
      await store.updateKey(keyId, { name: 'renamed' });
      const deliveries = createDeliveries(engine);
      await deliveries.route([{ name: keyId, types: ['budget.level'] }]);
      const bodies = [];
      for (
        let due = await deliveries.listDue(keyId, 50);
        due.length > 0;
        due = await deliveries.listDue(keyId, 50)
      )
        for (const delivery of due) {
          const { type, data } = JSON.parse(writeEvent(delivery.event)) as Record<string, unknown>;
          if (JSON.stringify(data).includes(keyId) || JSON.stringify(data).includes(`"${group}"`))
            bodies.push({ type, data });
          await deliveries.end(delivery, keyId, 'delivered', 'status 200');
        }
      const amounts = { amount: '0.000001', spent: '0.000000805' };
      expect(bodies).toHaveLength(2);
      expect(bodies).toEqual(
        expect.arrayContaining([
          {
            type: 'budget.level',
            data: {
              key: { id: keyId, name: `"O'Neil" ${keyId}` },
              level: '0.8',
              ...amounts,
              per: 'day',
              time_zone: 'UTC',
              period_start: '2026-11-23T00:00:00.000Z',
              refills_at: '2026-11-24T00:00:00.000Z',
            },
          },
          {
            type: 'budget.level',
            data: {
              group,
              level: '0.805',
              ...amounts,
              per: 'month',
              time_zone: 'Europe/Berlin',
              period_start: '2026-10-31T23:00:00.000Z',
              refills_at: '2026-11-30T23:00:00.000Z',
            },
          },
        ]),
      );
    });

    test('come anew with the next period, also for a charge that begins it', async () => {
      const { begin, charge, levels } = await setUp();
      await charge({ own: daily }, 600);
      const late = await begin(noonMs, { own: daily });
      const next = await begin(noonMs + dayMs, { own: daily });
      await next.settle(550);
      // It counts in the day before, whose row is gone.
      await late.settle(400);
      expect(await levels()).toEqual([
        ['key', 500, 600],
        ['key', 500, 550],
      ]);
    });

    test('come for a charge whose period the database has forgotten', async () => {
      const { keyId, begin, levels } = await setUp();
      const { settle } = await begin(noonMs, { own: daily });
      await engine.run([
        say('DELETE FROM open_rows WHERE account = (SELECT number FROM accounts WHERE key_id = ?)', keyId),
        say('DELETE FROM budgets WHERE id = ?', `${keyId} day UTC`),
      ]);
      await settle(900);
      expect(await levels()).toEqual([['key', 800, 900]]);
    });

    test('follow levels that change within a period: a new one is reached once, none that is lower comes again', async () => {
      const { charge, levels } = await setUp();
      await charge({ own: { ...daily, warnAt: [500] } }, 600);
      await charge({ own: { ...daily, warnAt: [300, 500, 610, 900] } }, 5, 5, 5);
      await charge({ own: { ...daily, warnAt: [100, 400] } }, 100);
      await charge({ own: daily }, 100);
      expect(await levels()).toEqual([
        ['key', 500, 600],
        ['key', 610, 610],
        ['key', 800, 815],
      ]);
    });

    test('come once for a level although the amount is raised, and that level is reached again', async () => {
      const { charge, levels, rows } = await setUp();
      await charge({ own: daily }, 500);
      const raised = { ...daily, raise: { nanos: 1_000, untilMs: noonMs + 1 } };
      await charge({ own: raised }, 500, 600);
      expect(await levels()).toEqual([
        ['key', 500, 500],
        ['key', 800, 1_600],
      ]);
      const amounts = (await rows()).map(
        (row) => (JSON.parse(String(row['data'])) as Record<string, unknown>)['amount_nanos'],
      );
      expect(amounts).toEqual([1_000, 2_000]);
    });

    test('are none where no webhook wants them, and the levels reached until then come not later', async () => {
      const { charge, levels } = await setUp(false);
      await charge({ own: daily, shared: daily }, 600);
      await createOutbox(engine, () => 'id').storeSettings({ lowBalanceNanos: null, budgetLevels: true });
      await charge({ own: daily, shared: daily }, 100);
      expect(await levels()).toEqual([]);
      await charge({ own: daily, shared: daily }, 100);
      expect(await levels()).toEqual([
        ['group', 800, 800],
        ['key', 800, 800],
      ]);
    });

    test('are none for a hold, a refusal, a request that was lost, or a second settlement', async () => {
      const { keyId, store, begin, levels } = await setUp();
      const terms = termsOf('key', keyId, daily, noonMs);
      const record = { ...opened(`${keyId} big`, 2_000), keyId, budgets: [terms] };
      expect(await store.open(record)).toMatchObject({ granted: true, holdNanos: 1_000 });
      expect(await store.open({ ...record, requestId: idOf(`${keyId} refused`) })).toMatchObject({
        granted: false,
      });
      expect(await store.closeAsLost([record.requestId])).toBe(1);
      expect(await levels()).toEqual([]);
      const { settle } = await begin(noonMs, { own: daily });
      await settle(500);
      await expect(settle(500)).rejects.toThrow('no open record');
      expect(await levels()).toEqual([['key', 500, 500]]);
    });

    test('are exactly the levels that any charges reach, once each, when they come at once', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 12 }),
          fc.uniqueArray(fc.integer({ min: 1, max: 1_000 }), { maxLength: maxWarningLevels }),
          async (charges, parts) => {
            const { begin, levels } = await setUp();
            const shared = { ...daily, warnAt: parts.toSorted((one, other) => one - other) };
            const begun = [];
            for (const _ of charges) begun.push(await begin(noonMs, { shared }));
            await Promise.all(begun.map(({ settle }, at) => settle(charges[at] ?? 0)));
            const found = await levels();
            const all = charges.reduce((sum, nanos) => sum + nanos, 0);
            const highest = Math.max(0, ...parts.filter((part) => part <= all));
            expect(found.at(-1)?.[1] ?? 0).toBe(highest);
            // Each was reached by the sum that it tells, and the next level not yet.
            for (const [, level, spent] of found) {
              expect(parts).toContain(level);
              expect(Math.max(...parts.filter((part) => part <= Number(spent)))).toBe(level);
            }
            expect(new Set(found.map(([, level]) => level)).size).toBe(found.length);
          },
        ),
        propertyRun(20),
      );
    });
  });
}
