import { manyKeys, mostNodes } from '../subjects/postgres.ts';
import { gridFigures, namedInGrid } from './grid.ts';
import type { Grid } from './grid.ts';
import { wholeAnswers } from './orders.ts';
import { plainFigure, quickShare } from './scenario.ts';
import type { Scenario } from './scenario.ts';
import type { Measured } from './stage.ts';

/** How many gateways get a load, and how many keys it has. */
const rows = [
  { name: 'one', title: `1 node, ${manyKeys} keys`, nodes: 1, keys: manyKeys },
  { name: 'two', title: `2 nodes, ${manyKeys} keys`, nodes: 2, keys: manyKeys },
  { name: 'four', title: `4 nodes, ${manyKeys} keys`, nodes: mostNodes, keys: manyKeys },
  { name: 'oneKey', title: '4 nodes, one key', nodes: mostNodes, keys: 1 },
];

/** What is read of a load on processes that share a database. */
export const sharingColumns = [
  plainFigure('perSecond', 'settled requests per second', '', 0),
  plainFigure('cpu', 'CPU of the gateways per request, µs', '', 0),
  plainFigure('serverCpu', 'CPU of PostgreSQL per request, µs', '', 0),
  plainFigure('commits', 'transactions per second', '', 0),
  plainFigure('walBytes', 'log of PostgreSQL per request, bytes', '', 0),
];

/** The figures of the nodes, as their table shows them. */
export const nodesGrid: Grid = { scenario: 'nodes', rows, columns: sharingColumns };

/** The load on processes that share a database. */
export const sharingLoad = { requests: 4_000, atOnce: 64, settings: { bodyBytes: 700 } };

/** Compiled code is complete only after thousands of requests in each process. */
export const warmUpRequests = 12_000;

/** The values of `sharingColumns`. */
export function readSharing({ result, cpuMs, server }: Measured): Readonly<Record<string, number>> {
  const seconds = result.elapsedMs / 1_000;
  return {
    perSecond: result.answers / seconds,
    cpu: (cpuMs * 1_000) / result.answers,
    serverCpu: ((server?.cpuMs ?? Number.NaN) * 1_000) / result.answers,
    commits: (server?.transactions ?? Number.NaN) / seconds,
    walBytes: (server?.walBytes ?? Number.NaN) / result.answers,
  };
}

/** The same load on more and more gateways that share a database. Gateways without a load keep their leases alone. */
export const nodesScenario: Scenario = {
  name: nodesGrid.scenario,
  title: 'Whole answers over nodes, 64 at once',
  figures: gridFigures(nodesGrid),
  isFresh: true,
  fits: ({ name }) => name === 'nodes',
  warmUp: async () => {},
  async run(stage, running, { isQuick }) {
    const { shared } = running;
    if (shared === null) throw new Error('the nodes have no database');
    const share = isQuick ? quickShare : 1;
    const load = (nodes: number, keys: number, requests: number): Promise<Measured> =>
      stage.measure(
        { ...running, shared: { ...shared, others: shared.others.slice(0, nodes - 1) } },
        {
          ...wholeAnswers(running, { ...sharingLoad, requests: requests * share }),
          keys: shared.keys.slice(0, keys),
        },
      );
    await load(mostNodes, manyKeys, warmUpRequests);
    const loads: Measured[] = [];
    const figures: Record<string, number> = {};
    for (const row of rows) {
      const measured = await load(row.nodes, row.keys, sharingLoad.requests);
      loads.push(measured);
      Object.assign(figures, namedInGrid(row, readSharing(measured)));
    }
    return { figures, loads };
  },
};
