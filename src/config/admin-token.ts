import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Where a generated admin token lies, so that the command line finds it. */
export const adminTokenFile = 'data/admin-token';

/** The token in the file, or `null` when there is none to be read. */
export function readAdminToken(file: string): string | null {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return null;
  }
}

/** The token in the file; made on the first call, for its owner's eyes only. */
export function ensureAdminToken(file: string): string {
  const existing = readAdminToken(file);
  if (existing !== null && existing !== '') return existing;
  const token = randomBytes(32).toString('base64url');
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, '', { mode: 0o600 });
  chmodSync(file, 0o600);
  writeFileSync(file, `${token}\n`);
  return token;
}
