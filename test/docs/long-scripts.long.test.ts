import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { longScripts } from '../long-scripts.ts';

const root = join(import.meta.dirname, '..', '..');

/** Their names in the table, and how they are started. */
const scripts: readonly (readonly [name: string, args: readonly string[]])[] = [
  ...Object.entries(longScripts).flatMap(([kind, named]) =>
    Object.keys(named).map((name, at) => [at === 0 ? kind : `${kind} ${name}`, [kind, name]] as const),
  ),
  ['scorecard', []],
];

/** The rows of the table of long scripts, by the names of the scripts. */
const rows = new Map(
  [
    ...readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8').matchAll(/^\| `npm run ([\w -]+)` \|(.*)\|$/gm),
  ].map(([, name = '', cells = '']) => [name, cells.split(' | ')]),
);

test('every long script has a row that says what it does, how long it takes, and which options it has', () => {
  const complete = [...rows].filter(([, cells]) => cells.length === 3).map(([name]) => name);
  expect(complete).toEqual(expect.arrayContaining(scripts.map(([name]) => name)));
});

/** How long a script may take to say what its options are, on a busy machine, in milliseconds. */
const helpMs = 60_000;

test.each(scripts)(
  '%s tells its options, and the table has all of them',
  async (name, args) => {
    const file = args.length === 0 ? `test/${name}/run.ts` : 'test/long-script.ts';
    const { stdout } = await promisify(execFile)(process.execPath, [file, ...args, '--help'], { cwd: root });
    expect(stdout).toContain(`npm run ${name}`);
    const told = [...stdout.matchAll(/^ {2}(--[\w-]+)/gm)].map(([, option = '']) => option);
    const shown = [...(rows.get(name)?.[2] ?? '').matchAll(/`(--[\w-]+)/g)].map(([, option = '']) => option);
    expect(shown.toSorted()).toEqual(told.toSorted());
  },
  helpMs,
);

test('a kind lists its scripts, and a name that it does not have ends with code 2', async () => {
  const start = promisify(execFile);
  const { stdout } = await start(process.execPath, ['test/long-script.ts', 'chaos', '--help'], { cwd: root });
  expect(stdout).toContain(Object.keys(longScripts['chaos'] ?? {}).join(' | '));
  await expect(
    start(process.execPath, ['test/long-script.ts', 'chaos', 'monkeys'], { cwd: root }),
  ).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining("there is no chaos 'monkeys'") });
});
