import { spawn } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

/** How `npm start` and `npm run textgate` start the program of a checkout. */

const root = join(import.meta.dirname, '..', '..');

const bundled = 'textgate is being bundled for this start and later ones: the sources are new or changed\n';

/** A checkout whose program prints a word, whether it runs from the sources, and its arguments. */
function makeCheckout(plugin = 'null') {
  const folder = makeTemporaryFolder();
  mkdirSync(join(folder, 'src'));
  mkdirSync(join(folder, 'config'));
  for (const name of ['start.js', 'bundle.js', 'kept-bundles.js'])
    cpSync(join(root, 'src', name), join(folder, 'src', name));
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(
    join(folder, 'config', 'rolldown.config.ts'),
    `import { writeFileSync } from 'node:fs';
    export default { cwd: ${JSON.stringify(folder)}, platform: 'node', input: { main: 'src/main.ts' }, plugins: [${plugin}],
      output: { dir: 'dist/bundle', entryFileNames: '[name].js' } };`,
  );
  const write = (word: string): void =>
    writeFileSync(
      join(folder, 'src', 'main.ts'),
      `const from: string = import.meta.url.endsWith('.ts') ? 'sources' : 'bundle';
      console.log('${word}', from, process.argv.slice(2).join(' '));`,
    );
  write('first');
  const start = (...args: readonly string[]) => {
    const child = spawn(process.execPath, [join(folder, 'src', 'start.js'), ...args]);
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) =>
      child.on('close', (code) => resolve({ code, stdout, stderr })),
    );
    return { child, ended };
  };
  const run = (...args: readonly string[]) => start(...args).ended;
  return { folder, write, start, run, bundles: () => readdirSync(join(folder, 'dist')) };
}

type Checkout = ReturnType<typeof makeCheckout>;

test('the first start builds a bundle and says so, and the next ones use it in silence', async () => {
  const { run, bundles } = makeCheckout();
  expect(await run('serve', '--port')).toEqual({
    code: 0,
    stdout: 'first bundle serve --port\n',
    stderr: bundled,
  });
  expect(await run()).toEqual({ code: 0, stdout: 'first bundle \n', stderr: '' });
  expect(bundles()).toHaveLength(1);
});

test('a changed source is bundled anew, also where its size and its time of change are as before', async () => {
  const { folder, write, run } = makeCheckout();
  await run();
  const file = join(folder, 'src', 'main.ts');
  const { atime, mtime } = statSync(file);
  write('later');
  utimesSync(file, atime, mtime);
  expect(await run()).toEqual({ code: 0, stdout: 'later bundle \n', stderr: bundled });
});

test('a bundle with a file cut short is not run', async () => {
  const { folder, run, bundles } = makeCheckout();
  await run();
  truncateSync(join(folder, 'dist', bundles()[0] ?? '', 'main.js'), 10);
  expect(await run()).toEqual({ code: 0, stdout: 'first bundle \n', stderr: bundled });
});

test('two first starts at once build two bundles, of which none is half made', async () => {
  const { run, bundles } = makeCheckout();
  const both = await Promise.all([run(), run()]);
  expect(both.map(({ code, stdout }) => ({ code, stdout }))).toEqual(
    [0, 1].map(() => ({ code: 0, stdout: 'first bundle \n' })),
  );
  expect(bundles().filter((name) => !name.startsWith('start-'))).toEqual([]);
});

/** What makes bundling fail, and the reason that is said. */
const obstacles: Record<string, { reason: string; plugin?: string; put?: (checkout: Checkout) => void }> = {
  'there is a file in the place of its folder': {
    reason: 'ENOTDIR',
    put: ({ folder }) => writeFileSync(join(folder, 'dist'), ''),
  },
  'the bundler fails': {
    reason: 'Could not resolve',
    put: ({ folder, write }) => {
      write('first');
      appendFileSync(
        join(folder, 'src', 'main.ts'),
        `if (process.argv.length === 99) await import('./missing.ts');`,
      );
    },
  },
  'rolldown is not installed': {
    reason: 'rolldown is not installed; `npm ci` installs it',
    put: ({ folder }) => unlinkSync(join(folder, 'node_modules')),
  },
  'the sources change meanwhile': {
    reason: 'the sources changed while they were bundled',
    plugin: `{ name: 'changing', generateBundle() { writeFileSync('src/added.ts', '') } }`,
  },
};

test.each(Object.entries(obstacles))(
  'where %s, the sources run, and the reason is said',
  async (_name, obstacle) => {
    const checkout = makeCheckout(obstacle.plugin);
    obstacle.put?.(checkout);
    const { code, stdout, stderr } = await checkout.run();
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'first sources \n' });
    expect(stderr).toContain('textgate starts from its sources, which takes longer: ');
    expect(stderr).toContain(obstacle.reason);
    const dist = statSync(join(checkout.folder, 'dist'), { throwIfNoEntry: false });
    const left = dist?.isDirectory() === true ? checkout.bundles() : [];
    expect(left).toEqual([]);
  },
);

test.each([
  ['a gateway', ['serve'], 0],
  ['a command', ['keys', 'list'], 128 + constants.signals.SIGTERM],
])('%s that is ended while it bundles ends at once, and leaves nothing', async (_name, args, code) => {
  const { folder, start, bundles } = makeCheckout(
    `{ name: 'slow', generateBundle: () => new Promise((resolve) => setTimeout(resolve, 60_000)) }`,
  );
  const { child, ended } = start(...args);
  await new Promise((resolve) => child.stderr.once('data', resolve));
  child.kill('SIGTERM');
  expect(await ended).toEqual({ code, stdout: '', stderr: bundled });
  expect(bundles()).toEqual([]);
  expect(readdirSync(join(folder, 'config'))).toEqual(['rolldown.config.ts']);
});

test('the eight newest bundles are kept, those of running processes, and nothing that was left an hour ago', async () => {
  const { folder, run, bundles } = makeCheckout();
  const hourAgo = Date.now() - 3_700_000;
  const old = Array.from({ length: 10 }, (_, index) => `start-${hourAgo + index}-1`);
  for (const name of [...old, `unfinished-1-${hourAgo}`, `unfinished-1-${Date.now()}`])
    mkdirSync(join(folder, 'dist', name), { recursive: true });
  writeFileSync(join(folder, 'dist', old[0] ?? '', `used-by-${process.pid}`), '');
  await run();
  const left = bundles().toSorted();
  expect(left.slice(0, 8)).toEqual([old[0], ...old.slice(3)]);
  expect(left.slice(8).map((name) => name.split('-')[0])).toEqual(['start', 'unfinished']);
});

test('a process says that it runs from its bundle until it ends', async () => {
  const { folder, write, run, bundles } = makeCheckout();
  write(
    "', (await import('node:fs')).readdirSync(import.meta.dirname).filter((name) => name.startsWith('used')).join(), '",
  );
  const { stdout } = await run();
  expect(stdout).toMatch(/ used-by-\d+ /);
  const files = readdirSync(join(folder, 'dist', bundles()[0] ?? ''));
  expect(files.filter((name) => name.startsWith('used'))).toEqual([]);
});
