import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onServer } from '../../support/test-postgres.ts';
import type { Acknowledged } from '../numbered-client.ts';
import { keyOf, startNumberedUpstream } from '../numbered-upstream.ts';
import type { NumberedUpstream } from '../numbered-upstream.ts';
import { serveConfig, servedModel } from '../served-process.ts';
import type { ServedProcess } from '../served-process.ts';

/** More than any run spends, in USD. */
const plenty = '1000000.00';

/** The answers of most questions take this long, in milliseconds. */
const shortestAnswerMs = 5;
const longestAnswerMs = 400;

/** A key of a cluster, whose questions begin with its number, from 1 on. */
export interface ClusterKey {
  readonly id: string;
  readonly number: number;
  readonly secret: string;
  /** How many of its requests may run at a time. */
  readonly concurrency: number;
  readonly requestsPerMinute: number;
}

interface KeySettings {
  readonly concurrency?: number;
  readonly requestsPerMinute?: number;
  readonly queueWait?: string;
  /** In USD; `null` for none. */
  readonly balance?: string | null;
  /** How long each of its answers takes, in milliseconds; a promise holds it back. A random time without it. */
  readonly answerMs?: () => number | Promise<number>;
}

/** A gateway that is started and ended again under the same name. */
interface ClusterNode {
  readonly name: string;
  /** Where it listens, or did last. */
  readonly url: string;
  readonly served: ServedProcess;
  start(): Promise<void>;
  /** Ends it with SIGKILL. */
  kill(): Promise<void>;
}

/** Some gateways over one database, and the upstream behind them. */
export interface Cluster {
  readonly nodes: readonly ClusterNode[];
  readonly upstream: NumberedUpstream;
  readonly keys: readonly ClusterKey[];
  /** The answers that clients received whole. */
  readonly acknowledged: Acknowledged;
  createKey(settings?: KeySettings): Promise<ClusterKey>;
  /** Runs a statement in the database. */
  sql(text: string): Promise<readonly Record<string, unknown>[]>;
  /** Ends all gateways with SIGTERM; resolves with what went wrong. */
  end(): Promise<readonly string[]>;
}

/** What the gateways of a cluster have in common, and apart. */
export interface ClusterOptions {
  /** The database's URL for gateways, and the present one for statements of the run. */
  readonly databaseUrl: string;
  readonly directUrl?: () => string;
  readonly random: () => number;
  /** By how much the clock of each gateway is wrong, in milliseconds: one gateway for each. */
  readonly clockShiftsMs?: readonly number[];
  readonly balanceMode?: 'soft' | 'strict';
  /** Settings of the upstream beside its address. */
  readonly upstreamSettings?: object;
}

const shiftedClock = join(import.meta.dirname, 'shifted-clock.ts');

/** Starts an upstream, and gateways on an empty database. */
export async function startCluster({
  databaseUrl,
  directUrl = () => databaseUrl,
  random,
  clockShiftsMs = [0, 0],
  balanceMode = 'soft',
  upstreamSettings = {},
}: ClusterOptions): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-nodes-'));
  const keys: ClusterKey[] = [];
  const answerMs: KeySettings['answerMs'][] = [];
  const upstream = await startNumberedUpstream({
    answerMs(question) {
      return (
        answerMs[keyOf(question)]?.() ?? shortestAnswerMs + random() * (longestAnswerMs - shortestAnswerMs)
      );
    },
  });
  const config = {
    server: { port: 0, drain: '25s' },
    storage: { url: databaseUrl, spool: 'spool' },
    limits: { concurrency: 100, requestsPerMinute: 10_000_000, balanceMode },
    ...servedModel(upstream.url, upstreamSettings),
  };
  const nodes = clockShiftsMs.map((shiftMs, index) =>
    createNode(`node ${index + 1}`, join(folder, `node-${index + 1}`), config, shiftMs),
  );
  // One after the other would do; at once they also find out who makes the schema.
  await Promise.all(nodes.map((node) => node.start()));
  return {
    nodes,
    upstream,
    keys,
    acknowledged: new Map(),
    async createKey({ answerMs: duration, balance = plenty, ...limits } = {}) {
      const number = keys.length + 1;
      answerMs[number] = duration;
      const body = { name: `key ${number}`, ...limits, ...(balance === null ? {} : { balance }) };
      const made = (await nodes[0]?.served.ask('POST', '/keys', body)) as { id: string; key: string };
      const key = {
        id: made.id,
        number,
        secret: made.key,
        concurrency: limits.concurrency ?? 100,
        requestsPerMinute: limits.requestsPerMinute ?? 10_000_000,
      };
      keys.push(key);
      return key;
    },
    sql: (text) => onServer(text, directUrl()),
    async end() {
      const endings = await Promise.all(nodes.map(({ served }) => served.end()));
      upstream.close();
      rmSync(folder, { recursive: true });
      return endings.flatMap((ending, index) =>
        ending === 0 ? [] : [`node ${index + 1} ended with ${ending}`],
      );
    },
  };
}

function createNode(name: string, folder: string, config: object, shiftMs: number): ClusterNode {
  mkdirSync(folder);
  let served: ServedProcess | null = null;
  const current = (): ServedProcess => {
    if (served === null) throw new Error(`${name} was never started`);
    return served;
  };
  return {
    name,
    get url() {
      return current().url;
    },
    get served() {
      return current();
    },
    async start() {
      served = await serveConfig({
        folder,
        config,
        ...(shiftMs === 0
          ? {}
          : { imports: [shiftedClock], environment: { CLOCK_SHIFT_MS: String(shiftMs) } }),
      });
    },
    async kill() {
      const { child } = current();
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await ended;
    },
  };
}
