import { setTimeout as wait } from 'node:timers/promises';
import { checkBooks, countDeadlocks, findExcess } from './check-books.ts';
import { checkStarts, keepStarts } from './check-starts.ts';
import { describeCounts, startLoad } from './load.ts';
import type { ScenarioOptions, ScenarioResult } from './scenario.ts';
import { onSharedServer } from './scenario.ts';

const clients = 14;

/** The limit of starts in a minute of the key whose frequency is limited. */
const perMinute = 30;

/** How much longer the load goes on, as a share: after a minute a second lot of starts is due, which is seen then. */
const beyond = 0.15;

/** Two gateways, random load: no key has more at once than its limit, or more starts in a minute than it may have. */
export async function limits({
  random,
  server,
  seconds,
  clockShiftsMs = [0, 0],
}: ScenarioOptions): Promise<ScenarioResult> {
  return onSharedServer({ random, server, clockShiftsMs }, async (cluster) => {
    await keepStarts(cluster);
    const keys = [];
    for (const concurrency of [1, 2, 5]) keys.push(await cluster.createKey({ concurrency }));
    const limited = await cluster.createKey({ concurrency: 5, requestsPerMinute: perMinute, balance: null });
    const load = startLoad(cluster, { keys, clients, random });
    // A start every second on average: the window slides over them, and they don't leave it all at once.
    const slow = startLoad(cluster, { keys: [limited], clients: 2, random, pauseMs: 3_000 });
    await wait(seconds * (1 + beyond) * 1_000);
    await Promise.all([load.stop(), slow.stop()]);
    const { faults, outcomes } = await checkBooks(cluster);
    const most = cluster.keys.map(
      ({ number, concurrency }) => `${cluster.upstream.mostAtOnce(number)} of ${concurrency}`,
    );
    const deadlocks = await countDeadlocks(cluster);
    return {
      figures:
        `${describeCounts(load.counts)}; at ${perMinute} a minute: ${describeCounts(slow.counts)}; ` +
        `most at once: ${most.join(', ')}; records: ${describeCounts(outcomes)}; deadlocks ${deadlocks}`,
      faults: [
        ...faults,
        ...findExcess(cluster),
        ...(await checkStarts(cluster, limited)),
        ...(deadlocks === 0 ? [] : [`${deadlocks} deadlocks`]),
        ...[...load.counts.keys(), ...slow.counts.keys()]
          .filter((kind) => !/^(whole|concurrency_limit_exceeded|rate_limit_exceeded)$/.test(kind))
          .map((kind) => `clients got: ${kind}`),
      ],
    };
  });
}
