import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { writeProblem } from '../../src/config/problem.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { readSecretFile, readSecretFileAgain } from '../../src/config/secret-file.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

function fileWith(text: string): string {
  const file = join(makeTemporaryFolder(), 'token');
  writeFileSync(file, text);
  return file;
}

function problemsOf(apiKey: unknown): readonly string[] {
  const read = readConfig({
    upstreams: { up: { url: 'http://127.0.0.1:8000/v1', apiKey } },
    models: { from: 'up' },
  });
  return read.kind === 'problems' ? read.problems.map(writeProblem) : [];
}

describe('the file of a secret', () => {
  test('is read without the line feed at its end', async () => {
    const file = fileWith('token-1\n');
    expect([readSecretFile(file), await readSecretFileAgain(file)]).toEqual(['token-1', 'token-1']);
  });

  test('is read through symlinks, as Kubernetes replaces the files of a volume', () => {
    const folder = makeTemporaryFolder();
    for (const version of ['1', '2']) {
      mkdirSync(join(folder, `..${version}`));
      writeFileSync(join(folder, `..${version}`, 'token'), `token-${version}`);
    }
    symlinkSync('..1', join(folder, '..data'));
    symlinkSync(join('..data', 'token'), join(folder, 'token'));
    expect(readSecretFile(join(folder, 'token'))).toBe('token-1');
    symlinkSync('..2', join(folder, '..data_tmp'));
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    rmSync(join(folder, '..1'), { recursive: true });
    expect(readSecretFile(join(folder, 'token'))).toBe('token-2');
  });

  test.each<[string, () => string, string]>([
    ['is missing', () => '/nowhere/token', 'there is no such file'],
    ['is a folder', () => makeTemporaryFolder(), 'is no regular file'],
    ['is a device', () => '/dev/zero', 'is no regular file'],
    ['is empty', () => fileWith(' \n'), 'is empty'],
    ['has several lines', () => fileWith('token-1\ntoken-2'), 'holds more than one line of printable ASCII'],
    ['is too large', () => fileWith('x'.repeat(16_385)), 'has more than 16384 bytes'],
  ])('is refused where it %s, by the config, too', async (_what, make, problem) => {
    const file = make();
    expect(() => readSecretFile(file)).toThrow(problem);
    await expect(readSecretFileAgain(file)).rejects.toThrow(problem);
    const [found = '', ...more] = problemsOf({ file });
    expect(more).toEqual([]);
    expect(found).toContain('upstreams.up.apiKey.file: ');
    expect(found).toContain(problem);
    expect(found).not.toContain('token-1');
    // A secret may have been written in the place of the path.
    expect(found).not.toContain(file);
  });
});

describe('an API key in a config', () => {
  test('may be a file', () => {
    expect(problemsOf({ file: fileWith('token-1') })).toEqual([]);
  });

  test.each<[string, unknown, readonly string[]]>([
    ['a number', 5, ['expected a text, not a number: write it in quotes']],
    ['an empty text', '', ['expected something']],
    ['an object without a file', {}, ['file: missing: expected a text, for example /var/run/secrets/token']],
    [
      'an object with a misspelt key',
      { fiel: 'x' },
      ['file: missing', "fiel: unknown key; did you mean 'file'?"],
    ],
  ])('is refused where it is %s', (_what, apiKey, problems) => {
    expect(problemsOf(apiKey)).toEqual(problems.map((problem) => expect.stringContaining(problem) as string));
  });
});
