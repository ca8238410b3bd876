import { setTimeout as wait } from 'node:timers/promises';
import { leaseMs } from '../../../src/domain/ports/leases.ts';
import { checkBooks, countDeadlocks, findExcess, verifyLedger } from './check-books.ts';
import type { Cluster } from './cluster.ts';
import { ask, askUntilItRuns, describeCounts, startLoad } from './load.ts';
import { onSharedServer } from './scenario.ts';
import type { ScenarioOptions, ScenarioResult } from './scenario.ts';

const clients = 12;

/** The time from one kill to the next, in milliseconds. */
const everyMs = 5_000;

/** How soon a slot of a killed gateway must be free: after its lease and a second, and the time of asking for it. */
const maxFreeMs = leaseMs + 1_000 + 500;

/** How often the slot is asked for, in milliseconds. */
const askMs = 100;

/** How long a slot is asked for before it counts as never free, in milliseconds. */
const neverFreeMs = 3 * leaseMs;

/** How long the request lasts whose gateway is killed, in milliseconds. */
const longMs = 600_000;

/** One of two gateways is killed again and again, and restarted at once. */
export async function kills({
  random,
  server,
  times,
  clockShiftsMs = [0, 0],
}: ScenarioOptions): Promise<ScenarioResult> {
  return onSharedServer({ random, server, clockShiftsMs }, async (cluster) => {
    const keys = [];
    for (const concurrency of [1, 2, 5, 100]) keys.push(await cluster.createKey({ concurrency }));
    const load = startLoad(cluster, { keys, clients, random });
    const freed: Promise<number>[] = [];
    const faults: string[] = [];
    for (let kill = 0; kill < times; kill++) {
      await wait(random() * 1_000);
      freed.push((await killWithSlot(cluster)).freeMs);
      await cluster.nodes[1]?.start();
      faults.push(...(await verifyLedger(cluster)).map((fault) => `after kill ${kill + 1}: ${fault}`));
      if (kill < times - 1) await wait(everyMs - 1_000);
    }
    const freeMs = await Promise.all(freed);
    await load.stop();
    const books = await checkBooks(cluster);
    const deadlocks = await countDeadlocks(cluster);
    const worstMs = Math.max(...freeMs);
    return {
      figures:
        `${times} kills: ${describeCounts(load.counts)}; records: ${describeCounts(books.outcomes)}, ` +
        `${books.overtaken} overtaken, ${books.unpaid} answers of the upstream unpaid; slots free after ` +
        `${Math.round(Math.min(...freeMs))}-${Math.round(worstMs)} ms; deadlocks ${deadlocks}`,
      faults: [
        ...faults,
        ...books.faults,
        ...findExcess(cluster),
        ...(worstMs > maxFreeMs ? [`a slot was free only after ${Math.round(worstMs)} ms`] : []),
        ...(deadlocks === 0 ? [] : [`${deadlocks} deadlocks`]),
      ],
    };
  });
}

/**
 * Kills the second gateway while it runs the only request that a key may have at a time. `freeMs` resolves with the time
 * that it took until the first gateway got the key's slot.
 */
async function killWithSlot(cluster: Cluster): Promise<{ readonly freeMs: Promise<number> }> {
  let isKilled = false;
  const key = await cluster.createKey({ concurrency: 1, answerMs: () => (isKilled ? 0 : longMs) });
  const running = await askUntilItRuns(cluster, key, 1);
  await cluster.nodes[1]?.kill();
  const killedMs = performance.now();
  isKilled = true;
  await running.answer;
  const untilFree = async (): Promise<number> => {
    while (performance.now() - killedMs < neverFreeMs) {
      const { isWhole } = await ask(cluster, key, false, 0);
      if (isWhole) break;
      await wait(askMs);
    }
    return performance.now() - killedMs;
  };
  return { freeMs: untilFree() };
}
