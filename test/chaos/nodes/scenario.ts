import { createDatabase } from '../../support/test-postgres.ts';
import { startCluster } from './cluster.ts';
import type { Cluster, ClusterOptions } from './cluster.ts';

/** How long and how often a scenario breaks things. */
export interface ScenarioOptions {
  readonly random: () => number;
  /** The server for databases of scenarios that don't break it; that of all tests without it. */
  readonly server?: string | undefined;
  /** How long load runs where a scenario measures under load, in seconds. */
  readonly seconds: number;
  /** How long an outage lasts, in seconds. */
  readonly outageSeconds: number;
  /** How often something is done again: kills, pauses, restarts. */
  readonly times: number;
  /** By how much the gateways' clocks are wrong, in milliseconds. */
  readonly clockShiftsMs?: readonly number[];
}

/** What a scenario measured, on one line, and what was wrong. */
export interface ScenarioResult {
  readonly figures: string;
  readonly faults: readonly string[];
}

export type Scenario = (options: ScenarioOptions) => Promise<ScenarioResult>;

/** Runs a scenario on a cluster with a database on a server that goes on, which is dropped afterwards. */
export async function onSharedServer(
  { server, ...options }: Omit<ClusterOptions, 'databaseUrl'> & Pick<ScenarioOptions, 'server'>,
  play: (cluster: Cluster) => Promise<ScenarioResult>,
): Promise<ScenarioResult> {
  const database = await createDatabase(server);
  try {
    const cluster = await startCluster({ ...options, databaseUrl: database.url });
    return await playAndEnd(cluster, play);
  } finally {
    await database.drop();
  }
}

/** Runs a scenario on a cluster and ends it; gateways that don't end as they should are faults. */
export async function playAndEnd(
  cluster: Cluster,
  play: (cluster: Cluster) => Promise<ScenarioResult>,
): Promise<ScenarioResult> {
  let ended = false;
  try {
    const { figures, faults } = await play(cluster);
    ended = true;
    return { figures, faults: [...faults, ...(await cluster.end())] };
  } finally {
    if (!ended) await cluster.end();
  }
}
