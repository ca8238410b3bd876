import { expect, onTestFinished, test } from 'vitest';
import { watchTopKeys } from '../../src/background/watch-top-keys.ts';
import type { UsageQuery } from '../../src/domain/ports/usage.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { noSources } from '../support/metric-sources.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const noon = Date.UTC(2030, 0, 31, 12);
const midnight = Date.UTC(2030, 0, 31);
const dayMs = 86_400_000;
const minuteMs = 60_000;

/** A row of usage by key. */
const row = (keyId: string, chargeNanos: bigint) => ({
  keyId,
  requests: 1,
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  chargeNanos,
});

/** A watch over charges that the test changes; a page has two keys. */
async function startWatch(charges: Record<string, bigint>, isOurs = true) {
  const clock = createFakeClock(noon);
  const asked: UsageQuery[] = [];
  const faults: string[] = [];
  const state = { charges, count: 2, isOurs, isDown: false, hasGroups: false };
  const watch = watchTopKeys(
    {
      usage: {
        async usage(query) {
          asked.push(query);
          if (state.isDown) throw new Error('the database is away');
          const rows = Object.entries(state.charges).map(([id, charge]) =>
            query.by.includes('group')
              ? Object.assign(row('', charge), { group: id === 'none' ? null : id })
              : row(id, charge),
          );
          const start = Number(query.after ?? 0);
          return {
            rows: rows.slice(start, start + 2),
            next: start + 2 < rows.length ? String(start + 2) : null,
          };
        },
      },
      store: { namesOf: async (ids) => new Map(ids.map((id) => [id, `name of ${id}`])) },
    },
    {
      ready: Promise.resolve(),
      clock,
      count: () => state.count,
      hasGroups: () => state.hasGroups,
      duty: { isOurs: async () => state.isOurs },
      onFault: (message, error) => void faults.push(`${message}: ${String(error)}`),
    },
  );
  onTestFinished(() => watch.stop());
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  const later = async (ms: number) => {
    clock.advance(ms);
    await settle();
  };
  await settle();
  await later(0);
  const shown = () => watch.current().map(({ keyId, chargeNanos }) => [keyId, chargeNanos]);
  return { watch, state, asked, faults, later, shown };
}

test('the keys that were charged most today are read at the start and every minute, from all pages', async () => {
  const { watch, state, asked, later, shown } = await startWatch({
    a: 1n,
    b: 0n,
    c: 5n,
    d: 3n,
    e: 2n ** 60n,
  });
  expect(shown()).toEqual([
    ['e', 2n ** 60n],
    ['c', 5n],
  ]);
  expect(watch.current()[1]?.keyName).toBe('name of c');
  expect(asked.map(({ by, fromMs, toMs, after }) => [by, fromMs, toMs, after])).toEqual(
    [null, '2', '4'].map((after) => [['key'], midnight, midnight + dayMs, after]),
  );
  state.charges = { a: 9n, c: 5n };
  await later(minuteMs - 1);
  expect(shown()[0]?.[0]).toBe('e');
  await later(1);
  expect(shown()).toEqual([
    ['a', 9n],
    ['c', 5n],
  ]);
});

test('the groups that were charged most today are read like them, where there are groups', async () => {
  const { watch, state, asked, later } = await startWatch({ a: 1n, b: 5n, none: 9n, c: 3n, d: 0n });
  expect(watch.currentGroups()).toEqual([]);
  expect(asked.every(({ by }) => by.join() === 'key')).toBe(true);
  state.hasGroups = true;
  await later(minuteMs);
  expect(watch.currentGroups()).toEqual([
    { group: 'b', chargeNanos: 5n },
    { group: 'c', chargeNanos: 3n },
  ]);
  await later(dayMs / 2 - minuteMs);
  expect(watch.currentGroups()).toEqual([]);
});

test('keys that were charged nothing are none of them', async () => {
  expect((await startWatch({ a: 0n, b: 0n })).shown()).toEqual([]);
});

test('after midnight none are shown until those of the new day are read', async () => {
  const { asked, later, shown } = await startWatch({ a: 1n });
  await later(dayMs / 2 - 1);
  expect(shown()).toEqual([['a', 1n]]);
  const before = asked.length;
  await later(1);
  expect([asked.length, shown()]).toEqual([before, []]);
  await later(minuteMs);
  expect(asked.at(-1)?.fromMs).toBe(midnight + dayMs);
});

test('nothing is read without metrics.topKeys, nor where another process shows them', async () => {
  const { state, asked, later, shown } = await startWatch({ a: 1n }, false);
  expect([asked.length, shown()]).toEqual([0, []]);
  state.isOurs = true;
  await later(minuteMs);
  expect(shown()).toEqual([['a', 1n]]);
  state.count = 0;
  expect(shown()).toEqual([]);
  const before = asked.length;
  await later(minuteMs);
  expect(asked).toHaveLength(before);
});

test('a database that is away is reported, and hides the keys until it answers', async () => {
  const { state, faults, later, shown } = await startWatch({ a: 1n });
  state.isDown = true;
  await later(minuteMs);
  expect(shown()).toEqual([]);
  expect(faults).toEqual(['the keys that spend most could not be read: Error: the database is away']);
  state.isDown = false;
  await later(minuteMs);
  expect(shown()).toEqual([['a', 1n]]);
});

test('the metrics have a series for each of them, and none for a key that is no longer among them', async () => {
  const metrics = createMetrics();
  let groups = [{ group: 'team-a', chargeNanos: 9n }];
  let keys = [{ keyId: 'key_a', keyName: 'a "b"\n', chargeNanos: 5n }];
  metrics.attach({ ...noSources, topKeys: () => keys, topGroups: () => groups });
  const shown = async () => (await metrics.expose()).body.match(/^textgate_top_.+$/gm);
  expect(await shown()).toEqual([
    String.raw`textgate_top_keys_charged_today_nanos{key_id="key_a",key_name="a \"b\"\n"} 5`,
    'textgate_top_groups_charged_today_nanos{group="team-a"} 9',
  ]);
  groups = [];
  keys = [{ keyId: 'key_c', keyName: 'c', chargeNanos: 7n }];
  expect(await shown()).toEqual(['textgate_top_keys_charged_today_nanos{key_id="key_c",key_name="c"} 7']);
});
