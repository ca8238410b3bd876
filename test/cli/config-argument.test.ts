import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { runCommand } from '../support/run-command.ts';
import { serveHere } from '../support/serve-here.ts';
import { freePorts } from '../support/textgate-process.ts';

function folderWithConfig(): string {
  const folder = makeTemporaryFolder();
  writeFileSync(
    join(folder, 'd.yaml'),
    'upstreams: { demo: { url: "demo:" } }\nmodels: { demo: { routes: [{ upstream: demo, model: demo }], free: true } }\n',
  );
  return folder;
}

const commands = [
  ['config check', ['config', 'check'], /d\.yaml is valid/],
  ['config show', ['config', 'show'], /upstreams:\n/],
  ['doctor', ['doctor'], /1 upstream of d\.yaml: /],
  ['health', ['health'], /127\.0\.0\.1:8081\/healthz/],
  ['serve', ['serve'], /serves/],
] as const;

test('the help of every command has lines of at most 100 characters', async () => {
  const folder = makeTemporaryFolder();
  for (const words of [
    [],
    ['serve'],
    ['doctor'],
    ['health'],
    ['config', 'check'],
    ['keys', 'create'],
    ['records'],
  ]) {
    const { stdout } = await runCommand([...words, '--help'], folder, { COLUMNS: '80' });
    const long = stdout.split('\n').filter((line) => line.length > 100);
    expect(long).toEqual([]);
  }
});

test('control characters of arguments are escaped in errors', async () => {
  for (const args of [
    ['no\u001b[2Jcommand'],
    ['cancel', 'a\u001b[2J'],
    ['config', 'check', 'a\u001b[2J.yaml'],
  ]) {
    const { code, stderr } = await runCommand(args);
    expect(code).toBe(1);
    expect(stderr).toContain(String.raw`\u{1b}[2J`);
    expect(stderr).not.toContain('\u001b');
  }
});

describe('the config file is an argument, an option, or that of TEXTGATE_CONFIG', () => {
  test.each(commands)('of %s', async (_name, words, expected) => {
    const folder = folderWithConfig();
    /** What the command prints; a gateway prints it while it runs. */
    const printed = async (args: readonly string[], environment = {}): Promise<string> => {
      if (words[0] !== 'serve') {
        const { stdout, stderr } = await runCommand([...words, ...args], folder, environment);
        return stdout + stderr;
      }
      const server = serveHere([...words, ...args], folder, { ...freePorts, ...environment });
      await server.printed(expected);
      server.signal('SIGTERM');
      await server.finished;
      return server.output();
    };
    expect(await printed(['d.yaml'])).toMatch(expected);
    expect(await printed(['--config', 'd.yaml'])).toMatch(expected);
    expect(await printed([], { TEXTGATE_CONFIG: 'd.yaml' })).toMatch(expected);
    const twice = await runCommand([...words, 'd.yaml', '-c', 'd.yaml'], folder, freePorts);
    expect(twice.code).not.toBe(0);
    expect(twice.stderr).toContain('give the config file once');
  });

  test('and is missing otherwise', async () => {
    const { code, stderr } = await runCommand(['config', 'check']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('no config file: give it as the argument')]);
  });
});
