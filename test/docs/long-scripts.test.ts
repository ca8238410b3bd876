import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>;
};
const longScripts = Object.keys(scripts).filter((name) => /^(?:bench|chaos|simulate|scorecard)\b/.test(name));

/** The rows of the table of long scripts, by the names of the scripts. */
const rows = new Map(
  [...readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8').matchAll(/^\| `npm run ([\w:]+)` \|(.*)\|$/gm)].map(
    ([, name = '', cells = '']) => [name, cells.split(' | ')],
  ),
);

test('every long script has a row that says what it does, how long it takes, and which options it has', () => {
  const complete = [...rows].filter(([, cells]) => cells.length === 3).map(([name]) => name);
  expect(complete).toEqual(expect.arrayContaining(longScripts));
});

/** How long a script may take to say what its options are, on a busy machine, in milliseconds. */
const helpMs = 60_000;

test.each(longScripts)(
  '%s tells its options, and the table has all of them',
  async (name) => {
    const [program, ...args] = (scripts[name] ?? '').split(' ');
    expect(program).toBe('node');
    const { stdout } = await promisify(execFile)(process.execPath, [...args, '--help'], { cwd: root });
    expect(stdout).toContain(`npm run ${name}`);
    const told = [...stdout.matchAll(/^ {2}(--[\w-]+)/gm)].map(([, option = '']) => option);
    const shown = [...(rows.get(name)?.[2] ?? '').matchAll(/`(--[\w-]+)/g)].map(([, option = '']) => option);
    expect(shown.toSorted()).toEqual(told.toSorted());
  },
  helpMs,
);
