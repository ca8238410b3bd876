import { setTimeout as wait } from 'node:timers/promises';
import { checkBooks } from './check-books.ts';
import { ask, describeCounts, kindOf } from './load.ts';
import { onSharedServer } from './scenario.ts';
import type { ScenarioOptions, ScenarioResult } from './scenario.ts';

const parallel = 1_000;

/** How many holds the balance is enough for, and a part of the next one. */
const enoughFor = 137;

/** How long it may take until every request is decided, in milliseconds. */
const decidedMs = 60_000;

/** A thousand requests at once over two gateways, whose balance mode is strict: exactly as many pass as holds fit. */
export async function strict({
  random,
  server,
  clockShiftsMs = [0, 0],
}: ScenarioOptions): Promise<ScenarioResult> {
  return onSharedServer({ random, server, balanceMode: 'strict', clockShiftsMs }, async (cluster) => {
    // Answers are held back until every request is decided: a hold that is given back would let another one pass.
    const decided = Promise.withResolvers<number>();
    const rich = await cluster.createKey({ concurrency: parallel });
    await ask(cluster, rich, false, 0);
    const [row] = await cluster.sql('SELECT max(hold) AS hold FROM records');
    const holdNanos = Number(row?.['hold']);
    const balanceNanos = Math.floor(holdNanos * (enoughFor + random() * 0.99));
    const key = await cluster.createKey({
      concurrency: parallel,
      balance: (balanceNanos / 1e9).toFixed(9),
      answerMs: () => decided.promise,
    });
    let refused = 0;
    const answers = Array.from({ length: parallel }, async (_, index) => {
      const answer = await ask(cluster, key, index % 4 < 2, index);
      if (!answer.isWhole) refused++;
      return answer;
    });
    const giveUpMs = performance.now() + decidedMs;
    while (refused + cluster.upstream.running(key.number) < parallel && performance.now() < giveUpMs)
      await wait(20);
    decided.resolve(0);
    const kinds = Map.groupBy(await Promise.all(answers), kindOf);
    const counts = new Map([...kinds].map(([kind, { length }]) => [kind, length]));
    const passed = counts.get('whole') ?? 0;
    const { faults } = await checkBooks(cluster);
    return {
      figures: describeCounts(counts),
      faults: [...faults, ...(passed === enoughFor ? [] : [`${passed} requests passed, not ${enoughFor}`])],
    };
  });
}
