import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { direct } from '../subjects/direct.ts';
import { streams } from './orders.ts';
import { canMeasure, processTree } from './process-usage.ts';
import { Stage } from './stage.ts';

test.runIf(canMeasure).each([
  ['the load generator', 'child-client.ts'],
  ['the simulator', 'child-simulator.ts'],
])('a load fails when %s ends', async (name, module) => {
  const stage = await Stage.open();
  onTestFinished(() => stage.close());
  const side = processTree(process.pid).find((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(module),
  );
  const running = await stage.start(direct);
  const order = streams(running, {
    requests: 1,
    atOnce: 1,
    settings: { textEvents: 2, held: 1, intervalMs: 1 },
  });
  const measured = stage.measure(running, order, 0, async () => {
    process.kill(side ?? Number.NaN, 'SIGKILL');
    // The stream stays open: only the end of the process can end the load.
    return new Promise(() => {});
  });
  await expect(measured).rejects.toThrow(`${name} has ended (SIGKILL)`);
});
