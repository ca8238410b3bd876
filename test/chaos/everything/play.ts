import { mkdtempSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { seededNumbers } from '../../support/random-numbers.ts';
import { createDatabase, onServer } from '../../support/test-postgres.ts';
import { databaseIn } from '../served-process.ts';
import type { ServedProcess } from '../served-process.ts';
import { checkBodies, checkEvidence, checkIdle, checkLog } from './checks.ts';
import type { AccountRow, Evidence, RecordRow, Views } from './checks.ts';
import { createClients } from './clients.ts';
import type { Clients } from './clients.ts';
import { disrupt } from './disruptions.ts';
import type { LiveKey, World } from './disruptions.ts';
import { createGateway, footprintOf } from './gateways.ts';
import type { Broken, Footprint, Gateway } from './gateways.ts';
import { sampleMemory } from './memory-samples.ts';
import { drawConfig, reportingUpstream, routed, shadowUpstream, tags } from './settings.ts';
import type { DrawnConfig } from './settings.ts';
import { startMoodyServers } from './upstreams.ts';
import type { MoodyServers } from './upstreams.ts';

const clientsAtOnce = 16;

/** The longest pause between two requests of a client, in milliseconds. */
const pauseMs = 150;

/** How long everything may take to come to rest: what a killed process left is closed after its lease. */
const restMs = 60_000;
const lookMs = 500;

/** What a process may have more than before the load, once it rests. */
const maxMoreMegabytes = 250;
/** Among them the connections to PostgreSQL, which are opened when they are needed. */
const maxMoreSockets = 24;

/** Balances in USD: enough, and so little that it is used up. */
const balances = [null, null, '1000', '1000', '0.002', '0.01'] as const;

/** Parts of prompts and answers, which no log has. */
const texts = ['wordsofaprompt', 'answer1of', 'answer2of', 'answer3of'];

export interface Played {
  readonly faults: readonly string[];
  readonly figures: Readonly<Record<string, number | string>>;
}

interface PlayOptions {
  readonly seed: number;
  readonly minutes: number;
  /** The server for the database; `null` for SQLite. */
  readonly server: string | null;
  /** Is kept and printed for looking at what a fault left. */
  readonly keep?: boolean;
}

/** Mixes everything against real processes for some minutes, and checks all that they leave. */
export async function playEverything({ seed, minutes, server, keep = false }: PlayOptions): Promise<Played> {
  const random = seededNumbers(seed);
  const folder = mkdtempSync(join(tmpdir(), 'textgate-everything-'));
  const database = server === null ? null : await createDatabase(server);
  const upstreams = await startMoodyServers([...routed, shadowUpstream], random, reportingUpstream);
  const storage = database === null ? null : { url: database.url, spool: 'spool' };
  const draw = (): DrawnConfig =>
    drawConfig({ random, urls: upstreams.urls, storage, workers: database === null ? 1 : 2 });
  const broken: Broken[] = [];
  const gateways = (database === null ? [0] : [0, 1]).map((node) =>
    createGateway(node, join(folder, `node-${node}`), broken),
  );
  const firstConfig = draw();
  await Promise.all(gateways.map((gateway) => gateway.start(firstConfig)));
  const query = async (text: string): Promise<readonly Record<string, unknown>[]> =>
    database === null ? queryFile(databaseIn(join(folder, 'node-0')), text) : onServer(text, database.url);
  const credited = new Map<string, number>();
  const world: World = {
    gateways,
    keys: [],
    random,
    secrets: new Set(),
    drawConfig: draw,
    createKey: (paying) => createKey(world, credited, paying ? balances[2 + Math.floor(random() * 4)] : null),
    credit: (keyId, nanos) => void credited.set(keyId, (credited.get(keyId) ?? 0) + nanos),
    cutDatabase:
      database === null
        ? null
        : async () =>
            void (await onServer(
              `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database.name}' AND pid <> pg_backend_pid()`,
              database.url,
            )),
    faults: [],
    counts: new Map(),
  };
  for (const balance of balances) world.keys.push(await createKey(world, credited, balance));
  const before = new Map(gateways.flatMap((one) => one.workers()).map((pid) => [pid, footprintOf(pid)]));
  const clients = createClients(random);
  const stopped = AbortSignal.timeout(minutes * 60_000);
  const sampled = sampleMemory(gateways, stopped);
  await Promise.all([...load(world, clients, stopped), disrupt(world, stopped)]);
  clients.close();
  upstreams.calm();
  const faults = world.faults;
  faults.push(...(await rest(gateways, query)));
  upstreams.closeIdle();
  await wait(1_000);
  faults.push(...(await checkRest(gateways)), ...checkFootprints(gateways, before));
  const evidence: Evidence = {
    sent: clients.sent,
    calls: upstreams.calls,
    broken,
    records: await readRecords(query),
    accounts: await readAccounts(query),
    credited,
    hasSharedLimits: database !== null,
  };
  const addresses = [...upstreams.urls.values()].map((url) => new URL(url).host);
  faults.push(...checkEvidence(evidence), ...checkBodies(clients.sent, [...addresses, ...world.secrets]));
  for (const { node, served } of gateways) {
    const ending = await served.end();
    if (ending !== 0) faults.push(`gateway ${node} ended with ${ending}`);
  }
  for (const gateway of gateways)
    faults.push(...checkLog(gateway.node, gateway.log(), [...texts, ...world.secrets]));
  upstreams.close();
  await database?.drop();
  if (!keep) rmSync(folder, { recursive: true });
  return {
    faults,
    figures: {
      ...describe(evidence, world, upstreams),
      'MB of a process': await sampled,
      ...(keep ? { folder } : {}),
    },
  };
}

function load({ gateways, keys, random }: World, clients: Clients, stopped: AbortSignal): Promise<void>[] {
  return Array.from({ length: clientsAtOnce }, async () => {
    while (!stopped.aborted) {
      const key = keys[Math.floor(random() * keys.length)];
      const gateway = gateways[Math.floor(random() * gateways.length)];
      if (key !== undefined && gateway !== undefined)
        await clients.ask({
          node: gateway.node,
          url: gateway.served.url,
          keyId: key.id,
          secret: key.secret,
        });
      const isAway = gateway !== undefined && gateway.isAway();
      await wait(random() * (isAway ? 10 : 1) * pauseMs);
    }
  });
}

async function createKey(
  { gateways, random, secrets }: Pick<World, 'gateways' | 'random' | 'secrets'>,
  credited: Map<string, number>,
  balance: string | null | undefined,
): Promise<LiveKey> {
  const gateway = gateways[Math.floor(random() * gateways.length)];
  const made = (await gateway?.served.ask('POST', '/keys', {
    name: `key ${credited.size}`,
    tags,
    ...(random() < 0.4 ? { group: random() < 0.5 ? 'first' : 'second' } : {}),
    ...(random() < 0.3 ? { budget: { amount: '0.02', per: 'day' } } : {}),
    ...(balance === null || balance === undefined ? {} : { balance }),
  })) as { id?: string; key?: string };
  if (made.id === undefined || made.key === undefined) throw new Error(`no key: ${JSON.stringify(made)}`);
  credited.set(made.id, Math.round(Number(balance ?? 0) * 1e9));
  secrets.add(made.key);
  return { id: made.id, secret: made.key, isPaying: balance !== null && balance !== undefined };
}

type Query = (text: string) => Promise<readonly Record<string, unknown>[]>;

function queryFile(file: string, text: string): readonly Record<string, unknown>[] {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    return database.prepare(text).all();
  } finally {
    database.close();
  }
}

/** Waits until nothing runs or waits anywhere; returns what stays. */
async function rest(gateways: readonly Gateway[], query: Query): Promise<readonly string[]> {
  const giveUpMs = performance.now() + restMs;
  for (;;) {
    const open = await query('SELECT request_id, owner FROM open_requests');
    const faults = open.length === 0 ? await checkRest(gateways) : [`open requests: ${JSON.stringify(open)}`];
    if (faults.length === 0 || performance.now() > giveUpMs) return faults;
    await wait(lookMs);
  }
}

/** What runs, waits or is held anywhere, also if a gateway does not answer. */
async function checkRest(gateways: readonly Gateway[]): Promise<readonly string[]> {
  try {
    const faults: string[] = [];
    for (const { node, served } of gateways) faults.push(...checkIdle(node, await readViews(served)));
    return faults;
  } catch (error) {
    return [`a gateway at rest does not answer: ${String((error as Error).cause ?? error)}`];
  }
}

async function readViews(served: ServedProcess): Promise<Views> {
  return {
    status: (await served.ask('GET', '/status')) as Views['status'],
    upstreams: (await served.ask('GET', '/upstreams')) as Views['upstreams'],
    shadows: (await served.ask('GET', '/shadow')) as object,
    groups: (await served.ask('GET', '/groups')) as object,
    ledger: (await served.ask('GET', '/ledger')) as Views['ledger'],
    metrics: await (await fetch(`${served.adminUrl}/metrics`)).text(),
  };
}

/** Memory and sockets of the processes that were there before the load. */
function checkFootprints(gateways: readonly Gateway[], before: ReadonlyMap<number, Footprint>): string[] {
  return gateways.flatMap((gateway) =>
    gateway.workers().flatMap((pid) => {
      const now = footprintOf(pid);
      const first = before.get(pid) ?? [...before.values()][0] ?? now;
      const isMore =
        now.megabytes > first.megabytes + maxMoreMegabytes || now.sockets > first.sockets + maxMoreSockets;
      return isMore
        ? [
            `process ${pid} of gateway ${gateway.node} has ${JSON.stringify(now)}, was ${JSON.stringify(first)}`,
          ]
        : [];
    }),
  );
}

async function readRecords(query: Query): Promise<RecordRow[]> {
  const rows = await query(
    'SELECT request_id, key_id, outcome, charge FROM records WHERE outcome IS NOT NULL',
  );
  return rows.map((row) => ({
    requestId: String(row['request_id']),
    keyId: String(row['key_id']),
    outcome: String(row['outcome']),
    charge: Number(row['charge']),
  }));
}

async function readAccounts(query: Query): Promise<AccountRow[]> {
  const rows = await query(
    `SELECT a.key_id, balance, held, spent, (SELECT coalesce(sum(delta), 0) FROM ledger l WHERE l.key_id = a.key_id) AS ledger,
       (SELECT coalesce(sum(delta), 0) FROM ledger l WHERE l.key_id = a.key_id AND kind = 'credit') AS credits FROM accounts a`,
  );
  return rows.map((row) => ({
    keyId: String(row['key_id']),
    balance: row['balance'] === null ? null : Number(row['balance']),
    held: Number(row['held']),
    spent: Number(row['spent']),
    ledger: Number(row['ledger']),
    credits: Number(row['credits']),
  }));
}

function describe(
  { sent, records }: Evidence,
  { counts }: World,
  { calls }: MoodyServers,
): Played['figures'] {
  const tell = (of: readonly string[]): string =>
    [...Map.groupBy(of, (each) => each)]
      .map(([name, { length }]) => `${name} ${length}`)
      .toSorted()
      .join(', ');
  return {
    requests: sent.length,
    'got 200': sent.filter(({ status }) => status === 200).length,
    left: sent.filter(({ hasLeft }) => hasLeft).length,
    statuses: tell(sent.map(({ status }) => String(status))),
    calls: calls.length,
    shadows: calls.filter(({ kind }) => kind === 'shadow').length,
    records: tell(records.map(({ outcome }) => outcome)),
    disruptions: [...counts].map(([name, count]) => `${name} ${count}`).join(', '),
  };
}
