import { setTimeout as wait } from 'node:timers/promises';
import { checkBooks, countDeadlocks, findExcess } from './check-books.ts';
import { describeCounts, startLoad } from './load.ts';
import { onOwnServer } from './own-server.ts';
import type { ScenarioOptions, ScenarioResult } from './scenario.ts';

const clients = 12;

/** How long the gateways run before the primary dies and after its standby took over, in milliseconds. */
const runMs = 6_000;

/** How long the primary goes on when nothing reaches its standby any more, in milliseconds. */
const behindMs = 1_000;

/** How long the database is away in between, in milliseconds. */
const awayMs = 1_000;

/**
 * The primary is killed under load a second after its standby was cut off, and the standby promoted: with an asynchronous
 * one the settlements of that second are lost, with a synchronous one none.
 */
export async function failover(options: ScenarioOptions): Promise<ScenarioResult> {
  const results = [];
  for (const isSynchronous of [false, true]) results.push(await failOver(options, isSynchronous));
  return {
    figures: results.map(({ figures }) => figures).join('; '),
    faults: results.flatMap(({ faults }) => faults),
  };
}

async function failOver({ random }: ScenarioOptions, isSynchronous: boolean): Promise<ScenarioResult> {
  const kind = isSynchronous ? 'synchronous' : 'asynchronous';
  return onOwnServer({ random, hasStandby: true }, async (own) => {
    const { cluster, server, standby, proxy, link } = own;
    const keys = [];
    for (const concurrency of [1, 2, 5, 100]) keys.push(await cluster.createKey({ concurrency }));
    if (isSynchronous) {
      await server.sql(`ALTER SYSTEM SET synchronous_standby_names = '*'`);
      await server.sql('SELECT pg_reload_conf()');
    }
    const load = startLoad(cluster, { keys, clients, random });
    await wait(runMs + random() * 1_000);
    link.mode = 'stalled';
    await wait(behindMs);
    await server.kill();
    link.reset();
    const before = cluster.acknowledged.size;
    await wait(awayMs);
    await standby?.sql('SELECT pg_promote()');
    own.useStandby();
    proxy.reset();
    await wait(runMs);
    await load.stop();
    const books = await checkBooks(cluster, isSynchronous ? 0 : Number.POSITIVE_INFINITY);
    const deadlocks = await countDeadlocks(cluster);
    const after = cluster.acknowledged.size - before;
    return {
      figures:
        `${kind}: ${books.forgotten} of ${cluster.acknowledged.size} whole answers without a settlement, ` +
        `${describeCounts(load.counts)}; records: ${describeCounts(books.outcomes)}, ${books.overtaken} overtaken, ${books.rebuilt} rebuilt, ` +
        `${books.unpaid} unpaid, over a limit: ${findExcess(cluster).join(', ') || 'none'}; deadlocks ${deadlocks}`,
      faults: [
        ...books.faults.map((fault) => `${kind}: ${fault}`),
        ...(after > 0 ? [] : [`${kind}: nothing was served after the failover`]),
        ...(deadlocks === 0 ? [] : [`${kind}: ${deadlocks} deadlocks`]),
      ],
    };
  });
}
