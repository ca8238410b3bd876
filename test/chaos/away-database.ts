import { setTimeout as wait } from 'node:timers/promises';
import { startPostgresServer } from '../support/postgres-server.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import type { TcpProxy } from '../support/tcp-proxy.ts';
import { checkBooks } from './nodes/check-books.ts';
import { startCluster } from './nodes/cluster.ts';
import type { Cluster } from './nodes/cluster.ts';
import { ask, describeCounts, startLoad } from './nodes/load.ts';
import { playAndEnd } from './nodes/scenario.ts';
import type { ScenarioResult } from './nodes/scenario.ts';
import type { NumberedAnswer } from './numbered-client.ts';
import { residentMib } from './resident-memory.ts';

const clients = 16;

/** Answers of the upstream that run when the database goes away, and come while it is away: their settlements wait. */
const runningAnswers = 20;
const runningMs = 3_000;

/** How soon each gateway must serve again, and may have no settlement left, once the database is back, in milliseconds. */
const maxReturnMs = 15_000;
const maxSettleMs = 30_000;
const lookMs = 50;

/** How much of its memory before the outage a gateway may have afterwards. */
const maxGrowth = 1.2;

const rowCount = 10;

interface Options {
  readonly random: () => number;
  /** How long the database is away, in milliseconds. */
  readonly awayMs: number;
  /** For how long the load runs before, and afterwards, when memory is compared, in milliseconds. */
  readonly quietMs: number;
}

/**
 * Two gateways under load whose PostgreSQL is away: for the first half of the time it refuses connections, for the second
 * one connections lead nowhere. Nothing but 503 with a time to come back may be answered meanwhile; afterwards every answer
 * is charged once, no queue has anything left, and memory is what it was. Prints a row for each tenth of the outage.
 */
export async function playAwayDatabase({ random, awayMs, quietMs }: Options): Promise<ScenarioResult> {
  // A server of its own has connections for its gateways when it is back, whatever else uses that of all tests.
  const server = await startPostgresServer();
  const proxy = await startTcpProxy({ host: '127.0.0.1', port: server.port });
  try {
    const urls = { databaseUrl: server.url(proxy.port), directUrl: () => server.url() };
    const cluster = await startCluster({ ...urls, random });
    return await playAndEnd(cluster, () => play(cluster, proxy, { random, awayMs, quietMs }));
  } finally {
    await proxy.close();
    await server.remove();
  }
}

async function play(
  cluster: Cluster,
  proxy: TcpProxy,
  { random, awayMs, quietMs }: Options,
): Promise<ScenarioResult> {
  const faults: string[] = [];
  const keys = [await cluster.createKey(), await cluster.createKey({ balance: null })];
  const long = await cluster.createKey({ answerMs: () => runningMs });
  let phase = 'before';
  const counts = new Map<string, number>();
  const refused: number[] = [];
  const onAnswer = (answer: NumberedAnswer): void => {
    const kind = answer.isWhole ? '200' : `${answer.status} ${answer.code ?? answer.fault}`;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    if (answer.status === 503) refused.push(answer.number);
    const isRefused = answer.code === 'storage_unavailable' && answer.retryAfter !== null;
    if (!answer.isWhole && !(answer.status === 503 && isRefused))
      faults.push(`${phase}: ${kind}, retry after ${answer.retryAfter}`);
  };
  const report = async (name: string, untilMs: number): Promise<void> => {
    phase = name;
    counts.clear();
    await wait(untilMs - performance.now());
    const memory = cluster.nodes.map((_, node) => `${memoryOf(cluster, node).toFixed(0)} MiB`).join(', ');
    const queues = await Promise.all(cluster.nodes.map((_, node) => queuesOf(cluster, node)));
    process.stdout.write(
      `  ${name.padEnd(12)} | ${memory} | ${queues.map(describeQueues).join('; ')} | ${describeCounts(counts)}\n`,
    );
  };
  process.stdout.write('  when | memory of each gateway | its queues | answers\n');
  const load = startLoad(cluster, { keys, clients, random, onAnswer });
  // Once for the code to be compiled and the buffers to have their sizes, once to compare with.
  await report('warming up', performance.now() + quietMs);
  await report('before', performance.now() + quietMs);
  const before = cluster.nodes.map((_, node) => memoryOf(cluster, node));

  const running = Promise.all(
    Array.from({ length: runningAnswers }, (_, index) => ask(cluster, long, index % 4 < 2, index)),
  );
  await wait(runningMs / 3);
  const awayFromMs = performance.now();
  await proxy.refuse();
  proxy.reset();
  for (let row = 1; row <= rowCount; row++) {
    const atMs = (row * awayMs) / rowCount;
    await report(`away ${(atMs / 1_000).toFixed(0)} s`, awayFromMs + atMs);
    if (row !== rowCount / 2) continue;
    proxy.mode = 'stalled';
    await proxy.accept();
  }
  faults.push(
    ...(await running).flatMap((answer) => (answer.isWhole ? [] : [`a running answer: ${answer.code}`])),
  );
  phase = 'back';
  proxy.mode = 'open';
  proxy.reset();
  const backMs = performance.now();
  const returnMs = await timeUntil(maxReturnMs, async () => {
    const answers = await Promise.all(
      cluster.nodes.map((_, node) => ask(cluster, keys[0] ?? long, true, node)),
    );
    return answers.every(({ isWhole }) => isWhole);
  });
  const settleMs = await timeUntil(maxSettleMs, async () => {
    const queues = await Promise.all(cluster.nodes.map((_, node) => queuesOf(cluster, node)));
    return queues.every((found) => found?.lagMs === 0);
  });
  await report('back', backMs + quietMs);
  const after = cluster.nodes.map((_, node) => memoryOf(cluster, node));
  await load.stop();
  const books = await checkBooks(cluster);
  const left = await Promise.all(cluster.nodes.map((_, node) => queuesOf(cluster, node)));
  // A key without a balance has its call made while its record is begun: its client may be refused behind the upstream's answer.
  const undelivered = refused.filter((number) => cluster.upstream.served.get(number)?.isWhole).length;
  const growth = after.map((mib, node) => mib / (before[node] ?? mib));
  return {
    figures:
      `served again after ${Math.round(returnMs)} ms, all settled after ${Math.round(settleMs)} ms; memory ` +
      `${growth.map((factor) => `${Math.round(factor * 100)} %`).join(' and ')} of that before; ` +
      `records: ${describeCounts(books.outcomes)}, ${undelivered} answers of the upstream came too late for a client that was refused`,
    faults: [
      ...new Set(faults),
      ...books.faults,
      ...(returnMs <= maxReturnMs ? [] : [`served again after ${Math.round(returnMs)} ms`]),
      ...(settleMs <= maxSettleMs ? [] : [`settlements waited for ${Math.round(settleMs)} ms`]),
      ...(books.unpaid === undelivered
        ? []
        : [
            `${books.unpaid} answers of the upstream were not charged, of which ${undelivered} were not delivered`,
          ]),
      ...(books.overtaken === 0 ? [] : [`${books.overtaken} records were closed while they ran`]),
      ...growth.flatMap((factor, node) =>
        factor <= maxGrowth ? [] : [`node ${node + 1}: memory is ${factor.toFixed(2)} times that before`],
      ),
      ...left.flatMap((queues, node) =>
        isEmpty(queues) ? [] : [`node ${node + 1}: left in its queues: ${describeQueues(queues)}`],
      ),
    ],
  };
}

function memoryOf(cluster: Cluster, node: number): number {
  return residentMib(cluster.nodes[node]?.served.child.pid);
}

/** What waits in a gateway: requests in progress and in queues, and the age of the oldest settlement in milliseconds. */
interface Queues {
  readonly running: number;
  readonly waiting: number;
  readonly lagMs: number;
}

/** Reads them from its status; `null` where that can't be read. */
async function queuesOf(cluster: Cluster, node: number): Promise<Queues | null> {
  const status = (await cluster.nodes[node]?.served.ask('GET', '/status').catch(() => null)) as {
    readonly in_flight?: { readonly running: number; readonly waiting: number };
    readonly ledger?: { readonly settlement_lag_ms: number };
  } | null;
  if (status?.in_flight === undefined || status.ledger === undefined) return null;
  const { running, waiting } = status.in_flight;
  return { running, waiting, lagMs: status.ledger.settlement_lag_ms };
}

function isEmpty(queues: Queues | null): boolean {
  return queues !== null && queues.running + queues.waiting + queues.lagMs === 0;
}

function describeQueues(queues: Queues | null): string {
  if (queues === null) return 'not told';
  const { running, waiting, lagMs } = queues;
  return `${running} run, ${waiting} wait, settlements for ${(lagMs / 1_000).toFixed(1)} s`;
}

/** How long something takes to become true, in milliseconds: it is given up soon after a limit. */
async function timeUntil(limitMs: number, isTrue: () => Promise<boolean>): Promise<number> {
  const startMs = performance.now();
  while (performance.now() - startMs <= limitMs && !(await isTrue())) await wait(lookMs);
  return performance.now() - startMs;
}
