import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { runCommand } from '../support/run-command.ts';

const run = promisify(execFile);

async function scriptFor(shell: string): Promise<string> {
  const { code, stdout } = await runCommand(['completion', shell]);
  expect(code).toBe(0);
  return stdout;
}

describe('textgate completion', () => {
  test.each([
    ['textgate ke', ['keys']],
    ['textgate keys cr', ['create', 'credit']],
    ['textgate keys create --con', ['--concurrency']],
    ['textgate keys create bob --bal', ['--balance']],
    ['textgate config ', ['check', 'show', 'schema', '--help']],
    ['textgate completion z', ['zsh']],
    ['textgate serve --admin', ['--admin-host', '--admin-port']],
  ])('bash completes “%s”', async (line, completions) => {
    const file = join(makeTemporaryFolder(), 'completion.bash');
    writeFileSync(file, await scriptFor('bash'));
    const complete = `source "$1"; COMP_WORDS=("\${@:2}"); COMP_CWORD=$(($# - 2))
      _textgate_completion; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = await run('bash', ['--norc', '-c', complete, 'bash', file, ...line.split(' ')]);
    expect(stdout.trimEnd().split('\n')).toEqual(completions);
  });

  test('zsh gets bash’s script and the adapter for it', async () => {
    const [first, ...rest] = (await scriptFor('zsh')).split('\n');
    expect(first).toBe('autoload -U +X bashcompinit && bashcompinit');
    expect(rest.join('\n')).toBe(await scriptFor('bash'));
  });

  test('fish gets a line for each command and each option, under its command', async () => {
    const script = await scriptFor('fish');
    expect(script).toContain(
      "complete -c textgate -n '__fish_use_subcommand' -f -a records -d 'list consumption records, newest first'",
    );
    expect(script).toContain(
      "complete -c textgate -n '__fish_seen_subcommand_from keys; and __fish_seen_subcommand_from credit' -l reference -d ",
    );
    expect(script).toContain("-d 'add to a key\\'s balance'");
  });

  test('refuses another shell, and names those that it has', async () => {
    const { code, stderr } = await runCommand(['completion', 'tcsh']);
    expect(code).toBe(1);
    expect(stderr).toContain('Allowed choices are bash, zsh, fish.');
  });
});
