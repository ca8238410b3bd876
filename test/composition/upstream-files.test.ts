import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { readUpstreamFiles } from '../../src/composition/upstreams/upstream-files.ts';
import { checkConfig } from '../../src/config/load.ts';

/** A config whose upstreams have their keys from commands that may take a minute each. */
function configOf(commands: Readonly<Record<string, readonly string[]>>) {
  const upstreams = Object.fromEntries(
    Object.entries(commands).map(([name, command]) => [
      name,
      { url: 'http://127.0.0.1:8000/v1', apiKey: { command, timeout: '60s' } },
    ]),
  );
  return checkConfig({ upstreams, models: { from: Object.keys(commands)[0] } }, 'the test');
}

const quick = ['sh', '-c', 'sleep 0.1; echo the-token-of-a-command'];
const nothingBefore = { printedBy: () => null };

test('the commands of a reload have a time together, as nothing else is done meanwhile; those of a start have not', () => {
  const both = configOf({ quick, slow: ['sleep', '60'] });
  expect(() => readUpstreamFiles(both, nothingBefore, 400)).toThrow(
    /^upstreams\.slow\.apiKey\.command: the command took longer than [12]?\d?\d ms$/,
  );
  expect(readUpstreamFiles(configOf({ quick }), null, 1).upstreams.get('quick')?.key).toBe(
    'the-token-of-a-command',
  );
});

test('a command of a reload for which no time is left is not run for as long as it wants', () => {
  expect(() => readUpstreamFiles(configOf({ slow: ['sleep', '60'] }), nothingBefore, 0)).toThrow(
    'the command took longer than 1 ms',
  );
});

test('a command that takes too long is killed with all that it has started, before the start fails', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'textgate-command-')), 'pid');
  const slow = ['sh', '-c', `sleep 60 & echo $! > ${file}; wait`];
  expect(() => readUpstreamFiles(configOf({ slow }), nothingBefore, 300)).toThrow('took longer than');
  // A process that no parent has waited for yet is a zombie.
  await vi.waitFor(() => {
    const stat = `/proc/${readFileSync(file, 'utf8').trim()}/stat`;
    let state = 'gone';
    try {
      state = readFileSync(stat, 'utf8').split(' ')[2] ?? '';
    } catch {
      // It is gone.
    }
    expect(['gone', 'Z']).toContain(state);
  });
});
