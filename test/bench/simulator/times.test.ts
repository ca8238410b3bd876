import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { machineMs } from './times.ts';

test('all processes of a machine read the same clock', async () => {
  const module = JSON.stringify(join(import.meta.dirname, 'times.ts'));
  const script = `import(${module}).then(({ machineMs }) => process.stdout.write(String(machineMs())))`;
  const beforeMs = machineMs();
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', script]);
  expect(Number(stdout)).toBeGreaterThan(beforeMs);
  expect(Number(stdout)).toBeLessThan(machineMs());
});
