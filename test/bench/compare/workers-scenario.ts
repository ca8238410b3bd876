import { workerSubjects } from '../subjects/postgres.ts';
import { gridFigures, namedInGrid } from './grid.ts';
import type { Grid } from './grid.ts';
import { readSharing, sharingColumns, sharingLoad, warmUpRequests } from './nodes-scenario.ts';
import { wholeAnswers } from './orders.ts';
import { quickShare } from './scenario.ts';
import type { Scenario } from './scenario.ts';

/** The figures of workers, as their table shows them: a row for each subject. */
export const workersGrid: Grid = {
  scenario: 'workers',
  rows: workerSubjects.map(({ name, workers }) => ({
    name,
    title: workers === 1 ? '1 process' : `${workers} workers`,
  })),
  columns: sharingColumns,
};

/** The load of the nodes on one gateway of one process, and of several workers to which its connections are handed in turn. */
export const workersScenario: Scenario = {
  name: workersGrid.scenario,
  title: 'Whole answers over workers, 64 at once',
  figures: gridFigures(workersGrid),
  isFresh: true,
  fits: ({ name }) => workerSubjects.some((subject) => subject.name === name),
  warmUp: async () => {},
  async run(stage, running, { isQuick }, { name }) {
    const share = isQuick ? quickShare : 1;
    const load = (requests: number) =>
      stage.measure(running, {
        ...wholeAnswers(running, { ...sharingLoad, requests: requests * share }),
        keys: running.shared?.keys ?? [],
      });
    // Its connections end with it: those of the measured load are spread over all workers, which have started by then.
    await load(warmUpRequests);
    const measured = await load(sharingLoad.requests);
    return { figures: namedInGrid({ name }, readSharing(measured)), loads: [measured] };
  },
};
