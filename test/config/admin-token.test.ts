import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ensureAdminToken, readAdminToken } from '../../src/config/admin-token.ts';

let folder = '';
let file = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'textgate-token-'));
  file = join(folder, 'data', 'admin-token');
});
afterEach(() => rmSync(folder, { recursive: true }));

const modeOf = (path: string) => statSync(path).mode & 0o777;

describe('the admin token', () => {
  test('is made on the first call and kept from then on', () => {
    const token = ensureAdminToken(file);
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(ensureAdminToken(file)).toBe(token);
    expect(readAdminToken(file)).toBe(token);
  });

  test('is never the same twice', () => {
    expect(ensureAdminToken(file)).not.toBe(ensureAdminToken(`${file}-2`));
  });

  test('is for its owner’s eyes only, and so is a folder made for it', () => {
    ensureAdminToken(file);
    expect(modeOf(file)).toBe(0o600);
    expect(modeOf(join(folder, 'data'))).toBe(0o700);
  });

  test('that somebody wrote is taken without its line end, and left as it is', () => {
    const own = join(folder, 'own');
    writeFileSync(own, ' my-own-token-of-16 \n');
    expect(ensureAdminToken(own)).toBe('my-own-token-of-16');
    expect(statSync(own).size).toBe(' my-own-token-of-16 \n'.length);
  });

  test('is made where the file is empty, and even then for its owner’s eyes only', () => {
    const empty = join(folder, 'empty');
    writeFileSync(empty, '\n', { mode: 0o644 });
    const token = ensureAdminToken(empty);
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(readAdminToken(empty)).toBe(token);
    expect(modeOf(empty)).toBe(0o600);
  });

  test('is null where there is no file', () => {
    expect(readAdminToken(file)).toBeNull();
  });
});
