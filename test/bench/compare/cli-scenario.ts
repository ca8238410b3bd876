import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { startProcess } from '../subjects/processes.ts';
import type { Figure, Scenario } from './scenario.ts';

const figure = (name: string, title: string): Figure => ({
  name,
  title,
  unit: 'ms',
  digits: 0,
  isAdded: false,
});

/** How long commands take that only print something. */
export const cliScenario: Scenario = {
  name: 'cli',
  title: 'The command line',
  figures: [figure('version', '`--version`'), figure('help', '`--help`')],
  isFresh: false,
  fits: ({ isTextgate }) => isTextgate,
  warmUp: async () => {},
  async run(_stage, { commandLine }) {
    const time = async (option: string): Promise<number> => {
      const startedMs = performance.now();
      const child = startProcess(process.execPath, [...(commandLine ?? []), option], { cwd: tmpdir() });
      await once(child, 'close');
      return performance.now() - startedMs;
    };
    return { figures: { version: await time('--version'), help: await time('--help') }, loads: [] };
  },
};
