import { setTimeout as wait } from 'node:timers/promises';
import type { NumberedAnswer } from '../numbered-client.ts';
import { checkBooks, countDeadlocks, findExcess } from './check-books.ts';
import { describeCounts, startLoad } from './load.ts';
import { onSharedServer } from './scenario.ts';
import type { ScenarioOptions, ScenarioResult } from './scenario.ts';

const clients = 12;

/** How long both gateways run between two restarts, in milliseconds. */
const betweenMs = 1_000;

/** Two gateways are restarted one after the other under load: no answer is cut, and no record is closed as lost. */
export async function restarts({ random, server, times }: ScenarioOptions): Promise<ScenarioResult> {
  return onSharedServer({ random, server }, async (cluster) => {
    const keys = [];
    for (const concurrency of [2, 5, 100]) keys.push(await cluster.createKey({ concurrency }));
    const cut: NumberedAnswer[] = [];
    const unserved: NumberedAnswer[] = [];
    const load = startLoad(cluster, {
      keys,
      clients,
      random,
      retries: true,
      onAnswer(answer) {
        if (answer.status === 200 && !answer.isWhole) cut.push(answer);
        if (answer.status === 0) unserved.push(answer);
      },
    });
    const faults: string[] = [];
    let slowestMs = 0;
    for (let restart = 0; restart < times; restart++) {
      await wait(betweenMs * (0.5 + random()));
      const node = cluster.nodes[restart % cluster.nodes.length];
      const endMs = performance.now();
      const ending = await node?.served.end();
      slowestMs = Math.max(slowestMs, performance.now() - endMs);
      if (ending !== 0) faults.push(`restart ${restart + 1}: the gateway ended with ${ending}`);
      await node?.start();
    }
    await wait(betweenMs);
    await load.stop();
    const books = await checkBooks(cluster);
    const lost = books.outcomes.get('lost') ?? 0;
    const dropped = unserved.filter(({ number }) => cluster.upstream.served.has(number));
    const deadlocks = await countDeadlocks(cluster);
    return {
      figures:
        `${times} restarts: ${describeCounts(load.counts)}; records: ${describeCounts(books.outcomes)}, ` +
        `${books.unpaid} unpaid; slowest end ${Math.round(slowestMs)} ms; deadlocks ${deadlocks}`,
      faults: [
        ...faults,
        ...books.faults,
        ...findExcess(cluster),
        ...(lost === 0 ? [] : [`${lost} records closed as lost`]),
        ...(books.overtaken === 0 ? [] : [`${books.overtaken} records closed while they ran`]),
        ...cut.map(({ requestId, fault }) => `${requestId}: its answer was cut: ${fault}`),
        ...dropped.map(
          ({ number, fault }) => `question ${number} reached the upstream, but got no answer: ${fault}`,
        ),
        ...(deadlocks === 0 ? [] : [`${deadlocks} deadlocks`]),
        ...[...load.counts.keys()]
          .filter((kind) => !/^(whole|concurrency_limit_exceeded|draining|no answer)$/.test(kind))
          .map((kind) => `clients got: ${kind}`),
      ],
    };
  });
}
