import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mutations } from './all-faults.ts';
import type { Mutation } from './mutation.ts';

/**
 * Checks the tests themselves: each deliberate fault is put into a copy of the sources, and the tests meant to find it
 * must fail. A fault that no test finds, or that no longer fits the sources, fails this script.
 * `node test/mutations/mutate.ts [words of a name]`
 */

const root = join(import.meta.dirname, '..', '..');
const timeoutMs = 180_000;
const words = process.argv.slice(2).join(' ');
const survivors = mutations
  .filter(({ name }) => name.includes(words))
  .filter((mutation) => !isFound(mutation));
process.exit(survivors.length === 0 ? 0 : 1);

/** All but the tools of the checks, which are large. */
function isNeeded(path: string): boolean {
  return !path.startsWith(join(root, 'config', 'checks'));
}

/** Whether the tests fail with the fault. */
function isFound({ name, file, find, replace, tests, script }: Mutation): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-mutation-'));
  try {
    for (const part of ['src', 'test', 'config', 'docs', 'package.json', 'tsconfig.json', 'README.md'])
      cpSync(join(root, part), join(folder, part), { recursive: true, filter: isNeeded });
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    const source = readFileSync(join(folder, file), 'utf8');
    if (!source.includes(find)) return report(name, 'does not fit the sources any more');
    writeFileSync(
      join(folder, file),
      source.replace(find, () => replace),
    );
    const command = script ?? [
      join(root, 'node_modules/vitest/vitest.mjs'),
      'run',
      '-c',
      'config/vitest.config.ts',
      ...tests,
    ];
    const { status } = spawnSync(process.execPath, command, {
      cwd: folder,
      timeout: timeoutMs,
      stdio: 'ignore',
    });
    return status === 0 ? report(name, 'NOT FOUND') : !report(name, 'found');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function report(name: string, result: string): false {
  process.stdout.write(`${name}: ${result}\n`);
  return false;
}
