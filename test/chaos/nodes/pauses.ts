import { setTimeout as wait } from 'node:timers/promises';
import type { NumberedAnswer } from '../numbered-client.ts';
import { keyOf } from '../numbered-upstream.ts';
import { checkBooks, countDeadlocks } from './check-books.ts';
import type { Cluster, ClusterKey } from './cluster.ts';
import { ask, askUntilItRuns, describeCounts, startLoad } from './load.ts';
import { onSharedServer } from './scenario.ts';
import type { ScenarioOptions, ScenarioResult } from './scenario.ts';

const clients = 12;

/** How long the gateways run between two pauses, in milliseconds: longer than a lease, so that each pause is one of its own. */
const betweenMs = 20_000;

/** How long an answer takes that outlasts the pause of its gateway, in milliseconds. */
const outlastMs = 10_000;

/** How often the slot of the paused gateway's request is asked for, in milliseconds. */
const askMs = 200;

/** One of two gateways is stopped with SIGSTOP for longer than its lease, and goes on. */
export async function pauses({
  random,
  server,
  times,
  outageSeconds,
}: ScenarioOptions): Promise<ScenarioResult> {
  return onSharedServer({ random, server }, async (cluster) => {
    const keys = [];
    for (const concurrency of [1, 2, 5]) keys.push(await cluster.createKey({ concurrency }));
    const unanswered: NumberedAnswer[] = [];
    const load = startLoad(cluster, {
      keys,
      clients,
      random,
      onAnswer(answer) {
        if (answer.status === 0) unanswered.push(answer);
      },
    });
    const long = await cluster.createKey({
      concurrency: 1,
      answerMs: () => outageSeconds * 1_000 + outlastMs,
    });
    const ranAtStop: number[] = [];
    for (let pause = 0; pause < times; pause++) {
      await wait(random() * 1_000);
      ranAtStop.push(await pauseNode(cluster, long, outageSeconds * 1_000));
      await wait(betweenMs);
    }
    await load.stop();
    const books = await checkBooks(cluster);
    const overlaps = cluster.keys.map((key) => overlapOf(cluster, key));
    const excess = cluster.keys.map(({ number, concurrency }) =>
      Math.max(0, cluster.upstream.mostAtOnce(number) - concurrency),
    );
    const most = Math.max(...ranAtStop);
    const deadlocks = await countDeadlocks(cluster);
    return {
      figures:
        `${times} pauses of ${outageSeconds} s: ${describeCounts(load.counts)}; records: ` +
        `${describeCounts(books.outcomes)}, ${books.overtaken} overtaken, ${books.unpaid} unpaid; over the limit by ` +
        `${excess.join(', ')} for ${overlaps.map((ms) => (ms / 1_000).toFixed(1)).join(', ')} s; ` +
        `ran on the paused gateway: ${ranAtStop.join(', ')}; deadlocks ${deadlocks}`,
      faults: [
        ...books.faults,
        ...(books.overtaken === 0 ? ['no settlement overtook a closing'] : []),
        // A connection may be closed that was silent for so long, but not one whose request has begun.
        ...unanswered
          .filter(({ number }) => cluster.upstream.served.has(number))
          .map(({ number, fault }) => `question ${number} reached the upstream, but got no answer: ${fault}`),
        ...(deadlocks === 0 ? [] : [`${deadlocks} deadlocks`]),
        ...excess
          .filter((over) => over > most)
          .map((over) => `${over} over a limit, with ${most} that were paused`),
      ],
    };
  });
}

/**
 * Stops the second gateway while it runs a long answer, and has it go on; meanwhile the first one is asked for its slot.
 * Returns how many requests the upstream was serving when it was stopped: no more of them than that were on it.
 */
async function pauseNode(cluster: Cluster, long: ClusterKey, pauseMs: number): Promise<number> {
  const running = await askUntilItRuns(cluster, long, 1);
  const { child } = cluster.nodes[1]?.served ?? {};
  const count = cluster.keys.reduce((sum, { number }) => sum + cluster.upstream.running(number), 0);
  child?.kill('SIGSTOP');
  const goesOnMs = performance.now() + pauseMs;
  let second: Promise<unknown> | null = null;
  while (performance.now() < goesOnMs) {
    const asked = ask(cluster, long, true, 0);
    // A refusal comes soon; an answer that does not has the slot.
    const first = await Promise.race([asked, wait(askMs, null)]);
    if (first === null) second = asked;
    if (second !== null) break;
  }
  await wait(Math.max(0, goesOnMs - performance.now()));
  child?.kill('SIGCONT');
  await Promise.all([running.answer, second]);
  return count;
}

/** For how long more requests of a key ran at the upstream than its limit, in milliseconds. */
function overlapOf({ upstream }: Cluster, { number, concurrency }: ClusterKey): number {
  const changes = [...upstream.served]
    .filter(([question]) => keyOf(question) === number)
    .flatMap(([, { arrivedMs, endedMs }]) => [
      { atMs: arrivedMs, by: 1 },
      { atMs: endedMs ?? performance.now(), by: -1 },
    ])
    .toSorted((a, b) => a.atMs - b.atMs || a.by - b.by);
  let running = 0;
  let overMs = 0;
  let sinceMs = 0;
  for (const { atMs, by } of changes) {
    if (running > concurrency) overMs += atMs - sinceMs;
    running += by;
    sinceMs = atMs;
  }
  return overMs;
}
