import { once } from 'node:events';
import { startProcess } from '../subjects/processes.ts';
import { plainFigure } from './scenario.ts';
import type { Scenario } from './scenario.ts';

/** How long commands take that only print something. */
export const cliScenario: Scenario = {
  name: 'cli',
  title: 'The command line',
  figures: [plainFigure('version', '`--version`', 'ms', 0), plainFigure('help', '`--help`', 'ms', 0)],
  isFresh: false,
  fits: ({ isTextgate }) => isTextgate,
  warmUp: async () => {},
  async run({ folder }, { commandLine }) {
    const faults: string[] = [];
    const time = async (option: string): Promise<number> => {
      const startedMs = performance.now();
      const child = startProcess(process.execPath, [...(commandLine ?? []), option], { cwd: folder });
      const [code] = (await once(child, 'close')) as [number | null];
      const elapsedMs = performance.now() - startedMs;
      if (code === 0) return elapsedMs;
      faults.push(`${option} ended with code ${code}`);
      return Number.NaN;
    };
    return { figures: { version: await time('--version'), help: await time('--help') }, loads: [], faults };
  },
};
