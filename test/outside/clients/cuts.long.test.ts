import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..', '..');
const clients = ['raw', 'openai7', 'openai4', 'vercel', 'langchain'];

test('a question by any client library whose connections are cut calls its upstream once and is charged once', async () => {
  const args = ['--cuts', '40', '--seed', '1', '--clients', clients.join(',')];
  const { stdout } = await promisify(execFile)(process.execPath, ['test/chaos/cuts/run.ts', ...args], {
    cwd: root,
  }).catch((error: { readonly stdout: string }) => error);
  const rows = stdout.split('\n').map((line) => line.trim().split(/ {2,}/));
  const byClient = rows.filter(([name = '']) => clients.includes(name));
  const found = byClient.map(([name, , , , calls, charges]) => [name, calls, charges]);
  expect(stdout).toContain('\n0 faults\n');
  expect(found).toEqual(clients.map((name) => [name, '1.000', '1.000']));
});
