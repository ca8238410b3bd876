import { wholeAnswers } from './orders.ts';
import { processTree } from './process-usage.ts';
import { plainFigure, quickShare } from './scenario.ts';
import type { Scenario } from './scenario.ts';
import type { Measured } from './stage.ts';
import { traceAbsence, traceCalls } from './trace-calls.ts';

/** The loads that are counted, and how many whole answers each of them has. */
const loads = [
  { name: 'one', title: '1 at a time', atOnce: 1, requests: 500 },
  { name: 'many', title: '32 at once', atOnce: 32, requests: 2_000 },
];

/** How many whole answers are sent before the count, so that files are open and connections kept. */
const warmUpRequests = 2_000;

const settings = { bodyBytes: 700 };

/**
 * The system calls of all processes and threads of a subject, counted in the kernel. The subject has
 * processes of its own for it, of which nothing else is measured.
 */
export const callsScenario: Scenario = {
  name: 'calls',
  title: 'System calls of a whole answer',
  figures: loads.map(({ name, title }) => plainFigure(name, title, 'per request', 1)),
  isFresh: true,
  absence: traceAbsence,
  fits: ({ name }) => name !== 'direct',
  warmUp: async () => {},
  async run(stage, running, { isQuick }) {
    if (running.pid === null) throw new Error('there is no process to trace');
    const share = isQuick ? quickShare : 1;
    const send = (requests: number, atOnce: number): Promise<Measured> =>
      stage.measure(running, wholeAnswers(running, { requests: requests * share, atOnce, settings }));
    await send(warmUpRequests, 32);
    const figures: Record<string, number> = {};
    const faults: string[] = [];
    const measured: Measured[] = [];
    for (const { name, title, atOnce, requests } of loads) {
      const trace = await traceCalls(processTree(running.pid), stage.folder);
      if (typeof trace === 'string') {
        faults.push(`${title}: ${trace}`);
        continue;
      }
      let calls: number | null = null;
      try {
        measured.push(await send(requests, atOnce));
      } finally {
        calls = await trace.end();
      }
      if (calls === null) faults.push(`${title}: perf has ended during the load`);
      else figures[name] = calls / (measured.at(-1)?.result.answers ?? Number.NaN);
    }
    return { figures, loads: measured, faults };
  },
};
