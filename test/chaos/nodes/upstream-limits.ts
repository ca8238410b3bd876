import { setTimeout as wait } from 'node:timers/promises';
import { leaseMs } from '../../../src/domain/ports/leases.ts';
import type { ServedQuestion } from '../numbered-upstream.ts';
import { checkBooks } from './check-books.ts';
import type { Cluster, ClusterKey } from './cluster.ts';
import { ask, describeCounts } from './load.ts';
import { onSharedServer } from './scenario.ts';
import type { ScenarioOptions, ScenarioResult } from './scenario.ts';

/** How many requests the upstream takes at a time, and how many clients each gateway has: all but one of them wait. */
const maxInFlight = 4;
const clientsOfEach = 6;

/** How long the answers take, in milliseconds. */
const [shortestMs, longestMs] = [40, 160];

/** The least part of the answers that one of two gateways must give. */
const leastPart = 0.35;

/** How long a gateway that came first may have more than its part, in milliseconds: it gives way with its next settling. */
const settlingMs = 1_300;

/** How soon the other gateway must have all of the limit after a kill: after the lease, its end, and two rounds. */
const maxFreeMs = leaseMs + 1_000 + 3_000;

/**
 * An upstream with a limit of requests in progress behind two gateways under load: it never has more of them, each gateway
 * gets its part, and the other one gets all of it when one is killed.
 */
export async function upstreamLimits({
  random,
  server,
  seconds,
  clockShiftsMs = [0, 0],
}: ScenarioOptions): Promise<ScenarioResult> {
  const upstreamSettings = { maxInFlight, queue: 100, queueWait: '60s' };
  return onSharedServer({ random, server, clockShiftsMs, upstreamSettings }, async (cluster) => {
    const answerMs = (): number => shortestMs + random() * (longestMs - shortestMs);
    const key = await cluster.createKey({ answerMs });
    const load = [0, 1].map((node) => askAt(cluster, key, node));
    const answered = (): readonly number[] => load.map(({ counts }) => counts.get('whole') ?? 0);
    await wait(settlingMs);
    const before = answered();
    await wait(seconds * 1_000);
    const whole = answered().map((count, node) => count - (before[node] ?? 0));
    await cluster.nodes[1]?.kill();
    const killedMs = performance.now();
    void load[1]?.end();
    while (cluster.upstream.running(key.number) < maxInFlight && performance.now() - killedMs < 3 * leaseMs)
      await wait(10);
    const freeMs = performance.now() - killedMs;
    await wait(1_000);
    await Promise.all(load.map((each) => each.end()));
    await cluster.nodes[1]?.start();
    const { faults } = await checkBooks(cluster);
    const served = [...cluster.upstream.served.values()];
    const most = mostAtOnce(served);
    const busy = busyPart(served, killedMs - seconds * 500, killedMs);
    const part = Math.min(...whole) / (whole.reduce((sum, count) => sum + count, 0) || 1);
    return {
      figures:
        `${load.map(({ counts }) => describeCounts(counts)).join(' and ')}; ${Math.round(part * 100)} % of one gateway; ` +
        `${most} at once of ${maxInFlight}, ${Math.round(busy * 100)} % of it busy; all of it ${Math.round(freeMs)} ms after a kill`,
      faults: [
        ...faults,
        ...(most <= maxInFlight ? [] : [`the upstream had ${most} requests at once`]),
        ...(part >= leastPart ? [] : [`one gateway gave ${whole.join(' and ')} answers`]),
        ...(freeMs <= maxFreeMs
          ? []
          : [`the other gateway had all of the limit only after ${Math.round(freeMs)} ms`]),
      ],
    };
  });
}

/** Some clients that ask one gateway again and again. */
function askAt(cluster: Cluster, key: ClusterKey, node: number) {
  const counts = new Map<string, number>();
  const over = new AbortController();
  const work = async (): Promise<void> => {
    while (!over.signal.aborted) {
      const { isWhole, code, status } = await ask(cluster, key, true, node);
      const kind = isWhole ? 'whole' : (code ?? String(status));
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
      if (!isWhole) await wait(20);
    }
  };
  const working = Promise.all(Array.from({ length: clientsOfEach }, work));
  return {
    counts,
    end(): Promise<unknown> {
      over.abort();
      return working;
    },
  };
}

/** The most questions that the upstream had in progress. */
function mostAtOnce(served: readonly ServedQuestion[]): number {
  const changes = served
    .flatMap(({ arrivedMs, endedMs }) => [
      { atMs: arrivedMs, by: 1 },
      { atMs: endedMs ?? Number.POSITIVE_INFINITY, by: -1 },
    ])
    .toSorted((a, b) => a.atMs - b.atMs || a.by - b.by);
  let [now, most] = [0, 0];
  for (const { by } of changes) most = Math.max(most, (now += by));
  return most;
}

/** Which part of the limit was in use between two times. */
function busyPart(served: readonly ServedQuestion[], fromMs: number, toMs: number): number {
  const busyMs = served.reduce(
    (sum, { arrivedMs, endedMs }) =>
      sum + Math.max(0, Math.min(endedMs ?? toMs, toMs) - Math.max(arrivedMs, fromMs)),
    0,
  );
  return busyMs / (maxInFlight * (toMs - fromMs));
}
