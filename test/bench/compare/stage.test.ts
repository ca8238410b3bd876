import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
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
  // It never answers: only the end of a process ends the load.
  const silent = createServer((socket) => socket.on('error', () => socket.destroy())).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  onTestFinished(() => void silent.close());
  const running = { ...(await stage.start(direct)), port: (silent.address() as AddressInfo).port };
  const side = processTree(process.pid).find((pid) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(module),
  );
  const measured = stage.measure(running, streams(running, { requests: 1, atOnce: 1, settings: {} }));
  process.kill(side ?? Number.NaN, 'SIGKILL');
  await expect(measured).rejects.toThrow(`${name} has ended (SIGKILL)`);
});
