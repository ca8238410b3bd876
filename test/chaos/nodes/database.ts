import { setTimeout as wait } from 'node:timers/promises';
import type { NumberedAnswer } from '../numbered-client.ts';
import { checkBooks, countDeadlocks, findExcess } from './check-books.ts';
import type { Cluster, ClusterKey } from './cluster.ts';
import { ask, describeCounts, startLoad } from './load.ts';
import { onOwnServer } from './own-server.ts';
import type { OwnServer } from './own-server.ts';
import type { ScenarioOptions, ScenarioResult } from './scenario.ts';

const clients = 12;

/** How long the gateways run between two outages, in milliseconds. */
const betweenMs = 1_500;

/** How many answers are in the middle when an outage begins, and how long they take, in milliseconds. */
const longAnswers = 4;
const longMs = 2_000;

/** How often an answer of the database is lost with its connection while answers are lost. */
const lostShare = 0.005;

/** How soon a gateway must serve again after the database is back, in milliseconds. */
const maxReturnMs = 15_000;

/** The outages in their order, of which `times` are played: each begins and ends under load. */
const outages: readonly {
  readonly name: string;
  readonly isShort?: boolean;
  begin(own: OwnServer, random: () => number): Promise<void> | void;
  end(own: OwnServer): Promise<void> | void;
}[] = [
  { name: 'stopped', begin: ({ server }) => server.stop(), end: ({ server }) => server.start() },
  {
    name: 'killed',
    isShort: true,
    begin: ({ server }) => server.kill(),
    end: ({ server }) => server.start(),
  },
  {
    name: 'restarted',
    isShort: true,
    begin: ({ server }) => server.stop(),
    end: ({ server }) => server.start(),
  },
];

/** Two gateways whose PostgreSQL is stopped, killed, restarted, and cut off between its commits and their answers. */
export async function database({
  random,
  seconds,
  times,
  outageSeconds,
}: ScenarioOptions): Promise<ScenarioResult> {
  return onOwnServer({ random }, async (own) => {
    const { cluster, proxy } = own;
    const faults: string[] = [];
    const keys: ClusterKey[] = [];
    for (const concurrency of [1, 2, 5, 100]) keys.push(await cluster.createKey({ concurrency }));
    const long = await cluster.createKey({ answerMs: () => longMs });
    const quick = await cluster.createKey({ answerMs: () => 0 });
    const load = startLoad(cluster, {
      keys,
      clients,
      random,
      onAnswer: (answer) => faults.push(...faultsOf(answer)),
    });
    await wait(betweenMs);
    const owners = await readOwners(cluster);
    const figures: string[] = [];
    for (const outage of outages.slice(0, times)) {
      const running = askLong(cluster, long);
      await wait(longMs / 2);
      const deadlocks = await countDeadlocks(cluster);
      if (deadlocks > 0) faults.push(`${deadlocks} deadlocks before it was ${outage.name}`);
      await outage.begin(own, random);
      await wait(outage.isShort ? longMs : outageSeconds * 1_000);
      await outage.end(own);
      const returnMs = await untilServed(cluster, quick);
      if (returnMs > maxReturnMs)
        faults.push(`${outage.name}: served again after ${Math.round(returnMs)} ms`);
      faults.push(...(await running).map((fault) => `${outage.name}: a running answer: ${fault}`));
      figures.push(`${outage.name}: serves again after ${Math.round(returnMs)} ms`);
      figures.push(...findExcess(cluster).map((excess) => `${outage.name}: ${excess}`));
      await wait(betweenMs);
    }
    let lost = 0;
    proxy.losesAnswer = () => random() < lostShare && ++lost > 0;
    await wait(seconds * 500);
    proxy.losesAnswer = () => false;
    figures.push(`${lost} answers of the database lost`);
    await wait(betweenMs);
    await load.stop();
    const books = await checkBooks(cluster);
    const after = await readOwners(cluster);
    const deadlocks = await countDeadlocks(cluster);
    return {
      figures:
        `${figures.join('; ')}; ${describeCounts(load.counts)}; records: ${describeCounts(books.outcomes)}, ` +
        `${books.rebuilt} rebuilt, ${books.unpaid} unpaid; deadlocks ${deadlocks}`,
      faults: [
        ...faults,
        ...books.faults,
        ...findExcess(cluster),
        ...(owners === after ? [] : [`leases were ended: ${owners} became ${after}`]),
        ...(books.overtaken === 0 ? [] : [`${books.overtaken} records were closed while they ran`]),
        ...(books.unpaid === 0 ? [] : [`${books.unpaid} answers of the upstream were not charged`]),
        ...(deadlocks === 0 ? [] : [`${deadlocks} deadlocks`]),
      ],
    };
  });
}

/** What is wrong with an answer: it is served, limited, or refused because of the database with a time to come back. */
function faultsOf({ isWhole, status, code, retryAfter, number, fault }: NumberedAnswer): readonly string[] {
  if (isWhole || status === 429) return [];
  if (status === 503 && code === 'storage_unavailable' && retryAfter !== null) return [];
  return [`question ${number}: ${status} ${code} ${fault}, retry after ${retryAfter}`];
}

/** Asks for some long answers; resolves with what was wrong with them. */
async function askLong(cluster: Cluster, long: ClusterKey): Promise<readonly string[]> {
  const asked = Array.from({ length: longAnswers }, (_, index) => ask(cluster, long, true, index));
  const answers = await Promise.all(asked);
  return answers.flatMap((answer) =>
    answer.isWhole ? [] : [`${answer.status} ${answer.code} ${answer.fault}`],
  );
}

/** Resolves with the time until both gateways serve, in milliseconds. */
async function untilServed(cluster: Cluster, key: ClusterKey): Promise<number> {
  const startMs = performance.now();
  const serves = async (node: number): Promise<void> => {
    while (performance.now() - startMs < 2 * maxReturnMs) {
      const { isWhole } = await ask(cluster, key, true, node);
      if (isWhole) return;
      await wait(50);
    }
  };
  await Promise.all(cluster.nodes.map((_, node) => serves(node)));
  return performance.now() - startMs;
}

/** The owners of leases, as a text. */
async function readOwners(cluster: Cluster): Promise<string> {
  return (await cluster.sql('SELECT id FROM owners ORDER BY id')).map(({ id }) => String(id)).join();
}
