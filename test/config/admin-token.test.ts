import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

describe('the admin token', () => {
  test('is made on the first call and kept from then on', () => {
    const token = ensureAdminToken(file, notice);
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(ensureAdminToken(file, notice)).toBe(token);
    expect(readAdminToken(file)).toBe(token);
  });

  test('is never the same twice', () => {
    expect(ensureAdminToken(file, notice)).not.toBe(ensureAdminToken(`${file}-2`, notice));
  });

  test('is for its owner’s eyes only, and so is a folder made for it', () => {
    ensureAdminToken(file, notice);
    expect(modeOf(file)).toBe(0o600);
    expect(modeOf(join(folder, 'data'))).toBe(0o700);
  });

  test('that somebody wrote is taken without its line end, and left as it is', () => {
    const own = join(folder, 'own');
    writeFileSync(own, ' my-own-token-of-16 \n', { mode: 0o600 });
    expect(ensureAdminToken(own, notice)).toBe('my-own-token-of-16');
    expect(statSync(own).size).toBe(' my-own-token-of-16 \n'.length);
  });

  test('is made where the file is empty, and even then for its owner’s eyes only', () => {
    const empty = join(folder, 'empty');
    writeFileSync(empty, '\n', { mode: 0o644 });
    const token = ensureAdminToken(empty, notice);
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(readAdminToken(empty)).toBe(token);
    expect(modeOf(empty)).toBe(0o600);
  });

  test('is null where there is no file', () => {
    expect(readAdminToken(file)).toBeNull();
  });

  /** Makes the file as a volume or another process may have left it. */
  const leave = (fileMode: number, folderMode: number, token = 'a-token-of-enough'): void => {
    mkdirSync(join(folder, 'data'));
    writeFileSync(file, `${token}\n`);
    chmodSync(file, fileMode);
    chmodSync(join(folder, 'data'), folderMode);
  };

  test.each([
    [
      'a mode that lets everybody write it',
      0o602,
      'a-token-of-enough',
      /can be written.*remove it.*TEXTGATE_ADMIN_TOKEN/,
    ],
    ['less than 16 characters', 0o600, `${'x'.repeat(15)} `, /less than 16 characters/],
  ])('is refused when its file has %s', (_name, fileMode, token, message) => {
    leave(fileMode, 0o700, token);
    expect(() => ensureAdminToken(file, notice)).toThrow(message);
    expect(modeOf(file)).toBe(fileMode);
  });

  test.each([0o640, 0o660, 0o644])(
    'is closed to other users where its file has mode %o, with a notice',
    (mode) => {
      leave(mode, 0o2775);
      expect(ensureAdminToken(file, notice)).toBe('a-token-of-enough');
      expect(modeOf(file)).toBe(0o600);
      expect(notices).toEqual([
        expect.stringMatching(/could be read by other users: its mode has been set to 0600/),
      ]);
    },
  );

  test.each([
    [0o775, []],
    [0o1777, []],
    [0o777, [expect.stringMatching(/every user can write in the folder.*chmod o-w.*TEXTGATE_ADMIN_TOKEN/)]],
  ])('is made in a folder of mode %o, and what others could do there is told', (mode, told) => {
    mkdirSync(join(folder, 'data'));
    chmodSync(join(folder, 'data'), mode);
    expect(ensureAdminToken(file, notice)).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(notices).toEqual(told);
  });

  test.skipIf(process.getuid?.() !== 0)(
    'is taken from root’s file in a volume of our group, as Kubernetes mounts it (needs root, to make such a file)',
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
    'is refused when its file belongs to another user (needs root, to make such a file)',
    () => {
      ensureAdminToken(file, notice);
      chownSync(file, 12_345, 0);
      expect(() => ensureAdminToken(file, notice)).toThrow(/belongs to another user.*chown 0/);
    },
  );
});
