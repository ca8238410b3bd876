import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { propertyRun } from '../support/property-run.ts';
import { memoryDatabase, playQuotas, quotaHistory } from '../support/quota-histories.ts';
import { QuotaWorld } from '../support/quota-world.ts';
import type { Limits, Node } from '../support/quota-world.ts';

/** Some processes on one database, each with requests that wait from the start. */
async function begin(
  limits: Limits,
  waiting: readonly number[],
): Promise<{ world: QuotaWorld; nodes: Node[] }> {
  const world = new QuotaWorld(memoryDatabase(), limits);
  const nodes = [];
  for (const count of waiting) {
    const node = await world.add();
    for (let one = 0; one < count; one++) node.arrive(1);
    nodes.push(node);
  }
  return { world, nodes };
}

const running = (nodes: readonly Node[]): readonly number[] => nodes.map((node) => node.running);

/** How long a request takes, in milliseconds. */
const requestMs = 300;

/** Has some processes end requests, so that others begin; returns how many each of them began. */
async function work(
  world: QuotaWorld,
  durationMs: number,
  nodes: readonly Node[] = world.nodes,
): Promise<readonly number[]> {
  const before = nodes.map(({ mine }) => mine.length);
  for (let passedMs = 0; passedMs < durationMs; passedMs += 100) {
    await world.pass(100);
    for (const node of nodes)
      for (const request of node.mine)
        if (!request.ended && world.clock.monotonicMs() - request.atMs >= requestMs)
          node.finish(node.mine.filter(({ ended }) => !ended).indexOf(request));
  }
  return nodes.map(({ mine }, at) => mine.length - (before[at] ?? 0));
}

describe('quotas of the limits of an upstream', () => {
  test('are all of one process that is alone, at once', async () => {
    const { world, nodes } = await begin({ maxInFlight: 4 }, [9]);
    await world.pass(100);
    expect(running(nodes)).toEqual([4]);
  });

  test('are equal for processes that all need more', async () => {
    const { world } = await begin({ maxInFlight: 6 }, [0, 0, 0]);
    for (const node of world.nodes) for (let one = 0; one < 500; one++) node.arrive(1);
    const started = await work(world, 20_000);
    const total = started.reduce((sum, count) => sum + count, 0);
    // Each lasts 300 ms or up to 100 ms longer: 20 s have room for 50 of each of the six at least.
    expect(total).toBeGreaterThan(270);
    for (const count of started) expect(count / total).toBeCloseTo(1 / 3, 1);
    expect(world.excesses).toEqual([]);
  });

  test('leave what one process does not need to the others', async () => {
    const { world, nodes } = await begin({ maxInFlight: 6 }, [1, 0, 0]);
    const [first, ...others] = nodes;
    await world.pass(1_000);
    for (const node of others) for (let one = 0; one < 500; one++) node.arrive(1);
    await work(world, 10_000, others);
    await world.pass(300);
    expect(first?.running).toBe(1);
    expect(running(others).toSorted((a, b) => a - b)).toEqual([2, 3]);
  });

  test('change hands where the limit is one, also under load from both', async () => {
    const { world } = await begin({ maxInFlight: 1 }, [500, 500]);
    const [first = 0, second = 0] = await work(world, 60_000);
    expect(first + second).toBeGreaterThan(100);
    expect(Math.min(first, second)).toBeGreaterThan(0.4 * (first + second));
    expect(world.excesses).toEqual([]);
  });

  test('of a killed process go to the others after its lease', async () => {
    const { world, nodes } = await begin({ maxInFlight: 4 }, [9, 9]);
    await world.pass(3_000);
    expect(world.inUse('maxInFlight')).toBe(4);
    nodes[0]?.kill();
    await world.pass(10_000);
    expect(nodes[1]?.running).toBeLessThan(4);
    await world.pass(8_000);
    expect(nodes[1]?.running).toBe(4);
  });

  test.each([true, false])(
    'of a minute outlive their process by a minute: those that it used, and all if it was killed (%s)',
    async (isKilled) => {
      const { world, nodes } = await begin({ requestsPerMinute: 10 }, [6, 0]);
      const [first, second] = nodes as [Node, Node];
      await world.pass(1_000);
      expect(first.running).toBe(6);
      if (isKilled) first.kill();
      else await first.quotas.close();
      first.isCut = true;
      for (let one = 0; one < 20; one++) second.arrive(1);
      await world.pass(50_000);
      // It had a quarter of the limit beside what it used, and did not live to give it back.
      expect(second.running).toBe(isKilled ? 1 : 4);
      await world.pass(35_000);
      expect(second.running).toBeGreaterThanOrEqual(10);
      expect(world.excesses).toEqual([]);
    },
  );

  test('serve what waits as soon as the answer comes', async () => {
    const { world, nodes } = await begin({ maxInFlight: 4 }, [2]);
    expect(running(nodes)).toEqual([0]);
    world.clock.advance(0);
    await world.settled();
    expect(running(nodes)).toEqual([2]);
  });

  test('are given back before others can have them: a lost answer leaves a process less', async () => {
    const { world, nodes } = await begin({ maxInFlight: 4 }, [4, 0]);
    const [first, second] = nodes as [Node, Node];
    await world.pass(1_000);
    while (first.running > 0) first.finish(0);
    for (let passedMs = 0; passedMs < 15_000; passedMs += 100) {
      first.fate = 'unanswered';
      await world.pass(100);
    }
    for (let one = 0; one < 4; one++) second.arrive(1);
    await world.pass(200);
    expect(second.running).toBe(4);
    for (let one = 0; one < 4; one++) first.arrive(1);
    expect(first.running).toBe(0);
  });

  test('are not taken back by a call that comes behind a later one', async () => {
    const { world, nodes } = await begin({ maxInFlight: 4 }, [2, 2]);
    const [first, second] = nodes as [Node, Node];
    await world.pass(2_200);
    expect(running(nodes)).toEqual([2, 2]);
    for (let one = 0; one < 4; one++) first.arrive(1);
    first.fate = 'done late';
    await world.pass(300);
    while (second.running > 0) second.finish(0);
    await world.pass(3_000);
    expect(running(nodes)).toEqual([4, 0]);
    await world.release(0);
    for (let one = 0; one < 4; one++) second.arrive(1);
    await world.pass(1_000);
    expect(running(nodes)).toEqual([4, 0]);
  });

  test('are lost with the lease: a process that is back has what it still uses, and asks for more', async () => {
    const { world, nodes } = await begin({ maxInFlight: 4 }, [4, 0]);
    const [first, second] = nodes as [Node, Node];
    await world.pass(1_000);
    for (let one = 0; one < 3; one++) first.finish(0);
    first.isCut = true;
    for (let one = 0; one < 4; one++) second.arrive(1);
    await world.pass(20_000);
    expect(running(nodes)).toEqual([1, 4]);
    for (let one = 0; one < 3; one++) first.arrive(1);
    first.isCut = false;
    await world.pass(2_000);
    expect(running(nodes)).toEqual([1, 4]);
    while (second.running > 0) second.finish(0);
    await world.pass(2_200);
    expect(running(nodes)).toEqual([4, 0]);
  });

  test('end with the lease by the clock of the process, while the database is away', async () => {
    const { world, nodes } = await begin({ maxInFlight: 4 }, [1]);
    const [node] = nodes as [Node];
    await world.pass(1_000);
    expect(node.quotas.of('up', 'maxInFlight')).toBeGreaterThan(0);
    node.isCut = true;
    await world.pass(9_000);
    expect(node.quotas.of('up', 'maxInFlight')).toBeGreaterThan(0);
    await world.pass(6_000);
    expect(node.quotas.of('up', 'maxInFlight')).toBe(0);
    node.isCut = false;
    node.arrive(1);
    await world.pass(1_200);
    expect(node.running).toBe(2);
  });

  test('cost a process without limits no call, and one that does not use them one in ten seconds', async () => {
    let calls = 0;
    const database = memoryDatabase();
    const renew = (...call: Parameters<typeof database.renew>) => (calls++, database.renew(...call));
    const world = new QuotaWorld({ ...database, renew }, {});
    await world.add();
    await world.pass(30_000);
    expect(calls).toBe(0);
    world.setLimits({ maxInFlight: 4, requestsPerMinute: 9 });
    await world.pass(30_000);
    expect(calls).toBeGreaterThan(1);
    expect(calls).toBeLessThan(6);
  });

  test('ask the database at most every 100 ms, and every second while nothing waits for more', async () => {
    let calls = 0;
    const database = memoryDatabase();
    const renew = (...call: Parameters<typeof database.renew>) => (calls++, database.renew(...call));
    const world = new QuotaWorld({ ...database, renew }, { maxInFlight: 4 });
    const node = await world.add();
    for (let one = 0; one < 1_000; one++) {
      node.arrive(1);
      node.finish(0);
      if (one % 10 === 0) await world.pass(10);
    }
    expect(calls).toBeLessThanOrEqual(11);
    calls = 0;
    await world.pass(10_000);
    expect(calls).toBeLessThanOrEqual(11);
  });

  test('never add up to more than the limit, whatever fails; idle processes keep none, and what is free is granted within two rounds', async () => {
    await fc.assert(
      fc.asyncProperty(quotaHistory(60), async (history) => {
        expect(await playQuotas(memoryDatabase(), history)).toEqual({ excesses: [], kept: [], missing: [] });
      }),
      propertyRun(20),
    );
  });
});
