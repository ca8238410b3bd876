import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ensureAdminToken, readAdminToken } from '../../src/config/admin-token.ts';

let folder = '';
let file = '';
let notices: string[] = [];
const notice = (line: string): void => void notices.push(line);
const moduleUrl = new URL('../../src/config/admin-token.ts', import.meta.url).href;
beforeEach(() => {
  notices = [];
  folder = mkdtempSync(join(tmpdir(), 'textgate-token-'));
  file = join(folder, 'data', 'admin-token');
});
afterEach(() => rmSync(folder, { recursive: true }));

const modeOf = (path: string) => statSync(path).mode & 0o777;

/** The length of a file's text; -1 without a file. */
function lengthOf(path: string): number {
  try {
    return readFileSync(path, 'utf8').length;
  } catch {
    return -1;
  }
}

describe('the admin token', () => {
  test('is generated on the first call and kept from then on', () => {
    const token = ensureAdminToken(file, notice);
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(ensureAdminToken(file, notice)).toBe(token);
    expect(readAdminToken(file)).toBe(token);
  });

  test('is in its file with all of its text, whenever another process of the folder looks', async () => {
    const rounds =
      `import { rmSync } from 'node:fs'; const { ensureAdminToken } = await import('${moduleUrl}');` +
      `for (let round = 0; round < 500; round++) { rmSync('${file}', { force: true }); ensureAdminToken('${file}', () => {}); }`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', rounds], { stdio: 'inherit' });
    const ended = once(child, 'exit');
    const seen = new Set<number>();
    while (child.exitCode === null) {
      for (let look = 0; look < 1_000; look++) seen.add(lengthOf(file));
      await setImmediate();
    }
    expect(await ended).toEqual([0, null]);
    // 43 characters and a line end, or no file.
    expect([...seen].filter((length) => length !== 44 && length !== -1)).toEqual([]);
    expect(readdirSync(join(folder, 'data'))).toEqual(['admin-token']);
  });

  test('is generated differently for each file', () => {
    expect(ensureAdminToken(file, notice)).not.toBe(ensureAdminToken(`${file}-2`, notice));
  });

  test('is readable by its owner only, as is a folder created for it', () => {
    ensureAdminToken(file, notice);
    expect(modeOf(file)).toBe(0o600);
    expect(modeOf(join(folder, 'data'))).toBe(0o700);
  });

  test('is read without its line end when an operator wrote the file, which stays unchanged', () => {
    const own = join(folder, 'own');
    writeFileSync(own, ' my-own-token-of-16 \n', { mode: 0o600 });
    expect(ensureAdminToken(own, notice)).toBe('my-own-token-of-16');
    expect(statSync(own).size).toBe(' my-own-token-of-16 \n'.length);
  });

  test('is generated when the file is empty, and then readable by its owner only, too', () => {
    const empty = join(folder, 'empty');
    writeFileSync(empty, '\n', { mode: 0o644 });
    const token = ensureAdminToken(empty, notice);
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(readAdminToken(empty)).toBe(token);
    expect(modeOf(empty)).toBe(0o600);
  });

  test('is null without a file', () => {
    expect(readAdminToken(file)).toBeNull();
  });

  /** Creates the file with the mode that a volume or another process may have given it. */
  const leave = (fileMode: number, folderMode: number, token = 'a-token-of-enough'): void => {
    mkdirSync(join(folder, 'data'));
    writeFileSync(file, `${token}\n`);
    chmodSync(file, fileMode);
    chmodSync(join(folder, 'data'), folderMode);
  };

  test.each([
    [
      'a mode that lets every user write it',
      0o602,
      'a-token-of-enough',
      /can be written.*remove it.*TEXTGATE_ADMIN_TOKEN/,
    ],
    ['fewer than 16 characters', 0o600, `${'x'.repeat(15)} `, /fewer than 16 characters/],
  ])('is refused when its file has %s', (_name, fileMode, token, message) => {
    leave(fileMode, 0o700, token);
    expect(() => ensureAdminToken(file, notice)).toThrow(message);
    expect(modeOf(file)).toBe(fileMode);
  });

  test.each([0o640, 0o660, 0o644])('is made private, with a notice, when its file has mode %o', (mode) => {
    leave(mode, 0o2775);
    expect(ensureAdminToken(file, notice)).toBe('a-token-of-enough');
    expect(modeOf(file)).toBe(0o600);
    expect(notices).toEqual([
      expect.stringMatching(/could be read by other users: its mode has been set to 0600/),
    ]);
  });

  test.each([
    [0o775, []],
    [0o1777, []],
    [0o777, [expect.stringMatching(/every user can write in the folder.*chmod o-w.*TEXTGATE_ADMIN_TOKEN/)]],
  ])('is generated in a folder of mode %o, with a notice when every user could replace it', (mode, told) => {
    mkdirSync(join(folder, 'data'));
    chmodSync(join(folder, 'data'), mode);
    expect(ensureAdminToken(file, notice)).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(notices).toEqual(told);
  });

  test.skipIf(process.getuid?.() !== 0)(
    'is read from root’s file in a volume of our group, as Kubernetes mounts it (needs root to create such a file)',
    () => {
      leave(0o660, 0o2775);
      chownSync(join(folder, 'data'), 0, 12_345);
      chownSync(file, 0, 12_345);
      chmodSync(file, 0o660);
      chmodSync(folder, 0o755);
      const found = spawnSync(
        process.execPath,
        [
          '--input-type=module',
          '-e',
          `process.setgroups([12345]); process.setgid(12346); process.setuid(12346);
          const { ensureAdminToken } = await import(${JSON.stringify(moduleUrl)});
          console.log(ensureAdminToken(${JSON.stringify(file)}, console.error));`,
        ],
        { encoding: 'utf8' },
      );
      expect([found.stdout, found.stderr]).toEqual([
        'a-token-of-enough\n',
        expect.stringMatching(/can be read or written by its group/),
      ]);
    },
  );

  test.skipIf(process.getuid?.() !== 0)(
    'is refused when its file belongs to another user (needs root to create such a file)',
    () => {
      ensureAdminToken(file, notice);
      chownSync(file, 12_345, 0);
      expect(() => ensureAdminToken(file, notice)).toThrow(/belongs to another user.*chown 0/);
    },
  );
});
