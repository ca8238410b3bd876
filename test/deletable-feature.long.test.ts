import { execFile } from 'node:child_process';
import { cpSync, globSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { startServing } from './support/serving-process.ts';
import { makeTemporaryFolder } from './support/temporary-folder.ts';
import { startTextgate } from './support/textgate-process.ts';

const root = join(import.meta.dirname, '..');
const run = promisify(execFile);

/** What the second meter is made of, beside its tests: its folder, its section of the config, and these lines. */
const folders = ['src/second-meter', 'src/config/schema/metering-schema.ts'];
const lines: readonly (readonly [file: string, line: RegExp])[] = [
  ['src/composition/features.ts', /^ {2}\(\{ metering \}\) => .*second-meter.*,\n/m],
  ['src/config/schema/schema.ts', /^import \{ metering \} from .*\n/m],
  ['src/config/schema/schema.ts', /^ {2}metering: .*,\n/m],
];

/** A copy of the sources without the second meter, in a folder of its own. */
function copyWithout(): string {
  const copy = makeTemporaryFolder();
  for (const path of ['src', 'package.json', 'tsconfig.json'])
    cpSync(join(root, path), join(copy, path), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  for (const path of folders) rmSync(join(copy, path), { recursive: true });
  for (const [file, line] of lines) {
    const text = readFileSync(join(copy, file), 'utf8');
    expect(text).toMatch(line);
    writeFileSync(join(copy, file), text.replace(line, ''));
  }
  return copy;
}

test('the second meter is deleted by its folder, its section of the config and three lines', async () => {
  const copy = copyWithout();
  const naming = globSync('src/**/*.ts', { cwd: copy }).filter((path) =>
    /second.?meter|metering|usage.?drift/i.test(readFileSync(join(copy, path), 'utf8')),
  );
  expect(naming).toEqual([]);

  const config = JSON.parse(readFileSync(join(copy, 'tsconfig.json'), 'utf8')) as object;
  writeFileSync(join(copy, 'tsconfig.json'), JSON.stringify({ ...config, include: ['src'] }));
  const { stdout } = await run(join(root, 'node_modules', '.bin', 'tsc'), ['--noEmit', '-p', copy]);
  expect(stdout).toBe('');

  const program = join(copy, 'src', 'main.ts');
  writeFileSync(
    join(copy, 'textgate.yaml'),
    'upstreams: { own: { url: "demo:" } }\nmetering: { sample: 1% }\n',
  );
  const checked = startTextgate(['config', 'check', 'textgate.yaml'], copy, {}, { program });
  const { code, stderr } = await checked.finished;
  expect([code, stderr]).toEqual([1, expect.stringMatching(/metering: /) as string]);

  const gateway = await startServing({ program });
  const { status, text } = await gateway.ask();
  expect([status, JSON.parse(text)]).toMatchObject([200, { object: 'chat.completion' }]);
  expect(await gateway.readMetrics()).toMatch(/^textgate_requests_total\{.*outcome="completed".*\} 1$/m);
});
