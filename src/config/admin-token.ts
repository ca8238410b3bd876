import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { dirname } from 'node:path';

/** Where a generated admin token lies, so that the command line finds it. */
export const adminTokenFile = 'data/admin-token';

/** The shortest admin token that is taken, in characters. */
export const minTokenLength = 16;

/** The bits of a mode by which the owner's group may read or write, by which others may, and by which they may write. */
const groupBits = 0o070;
const othersBits = 0o007;
const othersWriteBit = 0o002;

/** The bit of a folder in which everybody may only remove what is their own. */
const stickyBit = 0o1000;

/** Takes a line for the operator. */
export type Notice = (line: string) => void;

/** The token in the file, or `null` when there is none to be read. */
export function readAdminToken(file: string): string | null {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return null;
  }
}

/**
 * The token in the file; made on the first call, for its owner's eyes only. Throws, with the command that helps, when
 * others could have written the file or could read it: a planted token would open `/admin` to them. What is lax but
 * usual, such as a volume of a group, is told to the operator instead.
 */
export function ensureAdminToken(file: string, notice: Notice): string {
  checkFolder(dirname(file), notice);
  const existing = readExisting(file, notice);
  if (existing !== null) return existing;
  const token = randomBytes(32).toString('base64url');
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // A new file rather than the empty one: that may be open in another process.
  rmSync(file, { force: true });
  writeFileSync(file, `${token}\n`, { mode: 0o600, flag: 'wx' });
  return token;
}

/** The token of a file that only we, our group or root could have written; `null` when there is none or it is empty. */
function readExisting(file: string, notice: Notice): string | null {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) return null;
  const token = readFileSync(file, 'utf8').trim();
  if (token === '') return null;
  if (!isOurs(stats))
    throw new Error(
      `${file} belongs to another user: remove it, run chown ${process.getuid?.()} ${file}, or set TEXTGATE_ADMIN_TOKEN`,
    );
  if (token.length < minTokenLength)
    throw new Error(
      `${file} holds a token of less than ${minTokenLength} characters: remove it to have one made`,
    );
  checkMode(file, stats, notice);
  return token;
}

/**
 * What others may have written is not trusted any more. What they could only read is closed to them: a volume's mode is
 * often set by what mounts it, and a start that fails for it fails for ever.
 */
function checkMode(file: string, stats: Stats, notice: Notice): void {
  if (hasBits(stats, othersWriteBit))
    throw new Error(
      `${file} can be written by every user: remove it to have a token made, or set TEXTGATE_ADMIN_TOKEN`,
    );
  if (!hasBits(stats, groupBits | othersBits)) return;
  if (tighten(file)) return notice(`${file} could be read by other users: its mode is 0600 now`);
  if (hasBits(stats, othersBits))
    throw new Error(`${file} can be read by every user: run chmod 600 ${file}, or set TEXTGATE_ADMIN_TOKEN`);
  if (!isOfOurGroup(stats))
    throw new Error(
      `${file} can be read or written by a group that is not ours: run chmod 600 ${file}, or set TEXTGATE_ADMIN_TOKEN`,
    );
  notice(`${file} can be read or written by its group: run chmod 600 ${file} unless all of the group may`);
}

/** Takes all others' rights to a file; false where we may not, or its file system has no modes of its own. */
function tighten(file: string): boolean {
  try {
    chmodSync(file, 0o600);
    return !hasBits(statSync(file), groupBits | othersBits);
  } catch {
    return false;
  }
}

/** Who can write in the folder can put another file in the place of the token's, which then is not ours. */
function checkFolder(folder: string, notice: Notice): void {
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (stats === undefined || !hasBits(stats, othersWriteBit) || hasBits(stats, stickyBit)) return;
  notice(
    `every user can write in the folder ${folder} of the admin token: run chmod o-w ${folder}, or set TEXTGATE_ADMIN_TOKEN`,
  );
}

/** Root may read everything in any case, and owns what is mounted into containers. */
function isOurs({ uid }: Stats): boolean {
  return process.getuid === undefined || uid === 0 || uid === process.getuid();
}

function isOfOurGroup({ gid }: Stats): boolean {
  return gid === process.getegid?.() || process.getgroups?.().includes(gid) === true;
}

/** Windows has no such bits; what it reports there means nothing. */
function hasBits({ mode }: Stats, bits: number): boolean {
  return process.platform !== 'win32' && (mode & bits) !== 0;
}
