import { nextId } from '../../../src/composition/next-id.ts';
import { median } from '../report/statistics.ts';
import { serverUse } from '../subjects/postgres-server.ts';
import type { PostgresServer } from '../subjects/postgres-server.ts';
import { callNames, openForCalls } from './database-calls.ts';
import type { CallingProcess } from './database-calls.ts';
import { gridFigures, namedInGrid } from './grid.ts';
import type { Grid } from './grid.ts';
import { plainFigure, quickShare } from './scenario.ts';
import type { Scenario } from './scenario.ts';

/** The figures of each call, as their table shows them. */
export const statementsGrid: Grid = {
  scenario: 'statements',
  rows: callNames.map((name) => ({ name, title: `\`${name}\`` })),
  columns: [
    plainFigure('serverCpu', 'CPU of PostgreSQL, µs', '', 0),
    plainFigure('clientCpu', 'CPU of the process that calls it, µs', '', 0),
    plainFigure('walBytes', 'log of PostgreSQL, bytes', '', 0),
    plainFigure('alone', 'time until its answer, one at a time, ms', '', 2),
  ],
};

/** As many requests make a call at the same time, each with a key of its own, as the loads on gateways have. */
const atOnce = 64;

/** How often so many requests make each call, and before that, so that all code is compiled. */
const batches = 40;
const warmUpBatches = 40;

/** How many requests make their calls one after the other. */
const aloneRequests = 200;

/** What a call took in all batches. */
interface CallUse {
  serverMs: number;
  clientMs: number;
  walBytes: number;
}

/** What each of the calls of a request costs, made by this process without a gateway. */
export const statementsScenario: Scenario = {
  name: statementsGrid.scenario,
  title: 'The database calls of a request',
  figures: gridFigures(statementsGrid),
  isFresh: false,
  fits: ({ name }) => name === 'postgres',
  warmUp: async () => {},
  async run(_stage, { shared }, { isQuick }) {
    if (shared === null) throw new Error('there is no database to call');
    const share = isQuick ? quickShare : 1;
    const caller = await openForCalls(shared.url, atOnce);
    try {
      await measureBatches(caller, shared.server, warmUpBatches * share);
      const uses = await measureBatches(caller, shared.server, batches * share);
      const alone = await timeAlone(caller, aloneRequests * share);
      const requests = atOnce * batches * share;
      const rows = callNames.map((name, index) => {
        const { serverMs, clientMs, walBytes } = uses[index] ?? noUse();
        return namedInGrid(
          { name },
          {
            serverCpu: (serverMs * 1_000) / requests,
            clientCpu: (clientMs * 1_000) / requests,
            walBytes: walBytes / requests,
            alone: median(alone[index] ?? []),
          },
        );
      });
      return { figures: Object.assign({}, ...rows) as Readonly<Record<string, number>>, loads: [] };
    } finally {
      await caller.close();
    }
  },
};

const noUse = (): CallUse => ({ serverMs: 0, clientMs: 0, walBytes: 0 });

async function measureBatches(
  { calls }: CallingProcess,
  server: PostgresServer,
  count: number,
): Promise<readonly CallUse[]> {
  const uses = callNames.map(noUse);
  for (let batch = 0; batch < count; batch++) {
    const ids = Array.from({ length: atOnce }, () => `req_${nextId()}`);
    for (const [index, name] of callNames.entries()) {
      const before = await server.read();
      const cpuBefore = process.cpuUsage();
      await Promise.all(ids.map((id, request) => calls[name](request, id)));
      const { user, system } = process.cpuUsage(cpuBefore);
      const { cpuMs, walBytes } = serverUse(before, await server.read());
      const use = uses[index] ?? noUse();
      use.serverMs += cpuMs;
      use.clientMs += (user + system) / 1_000;
      use.walBytes += walBytes;
    }
  }
  return uses;
}

/** The times of each call in milliseconds, while no other one is made. */
async function timeAlone({ calls }: CallingProcess, requests: number): Promise<readonly number[][]> {
  const times = callNames.map((): number[] => []);
  for (let request = 0; request < requests; request++) {
    const id = `req_${nextId()}`;
    for (const [index, name] of callNames.entries()) {
      const startedMs = performance.now();
      await calls[name](request, id);
      times[index]?.push(performance.now() - startedMs);
    }
  }
  return times;
}
