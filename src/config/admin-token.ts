import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  realpathSync,
} from 'node:fs';
import type { Stats } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { realPlace } from '../shared/real-place.ts';

/** The name of the file of a generated admin token. */
export const adminTokenName = 'admin-token';

/** Where a generated admin token was in earlier versions, whatever the database: below the folder of the start. */
export const oldAdminTokenFile = `data/${adminTokenName}`;

/** The length of the shortest valid admin token, in characters. */
export const minTokenLength = 16;

/** The bits of a file's mode for its group, for other users, and for writing by other users. */
const groupBits = 0o070;
const othersBits = 0o007;
const othersWriteBit = 0o002;

/** The mode bit of a folder in which users can remove only their own files. */
const stickyBit = 0o1000;

/** Writes a line for the operator. */
export type Notice = (line: string) => void;

/** The token in the file; `null` when there is none. Throws, with what to do, if the file can't be read. */
export function readAdminToken(file: string): string | null {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw new Error(
      `the admin token in ${file} can't be read (${code}): give the user of this process access to it, or set TEXTGATE_ADMIN_TOKEN`,
      { cause: error },
    );
  }
}

/**
 * The token in the file, which is created on the first call and readable by its owner only. Throws, with the command
 * that fixes it, when other users could have written the file or can read it: a planted token would open `/admin` to
 * them. For a lax but usual mode, such as that of a group's volume, the operator gets a notice instead.
 */
export function ensureAdminToken(file: string, notice: Notice): string {
  checkFolder(dirname(file), notice);
  const existing = readExisting(file, notice);
  if (existing !== null) return existing;
  const token = randomBytes(32).toString('base64url');
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // A new file, because an empty one may be open in another process.
  if (existsSync(file)) rmSync(file, { force: true });
  return putToken(file, token) ? token : (readExisting(file, notice) ?? ensureAdminToken(file, notice));
}

/**
 * Puts the token in its file, unless another process was first. It gets its name with all of its text: a second node that
 * looks into a folder that they share would take an empty file for one that is left over.
 */
function putToken(file: string, token: string): boolean {
  const own = `${file}.${process.pid}-${randomBytes(4).toString('hex')}`;
  try {
    writeFileSync(own, `${token}\n`, { mode: 0o600, flag: 'wx' });
    giveName(own, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(own, { force: true });
  }
}

/** Gives a file a second name, which must be free. */
function giveName(file: string, name: string): void {
  try {
    linkSync(file, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw error;
    // A file system without hard links, as some that containers mount.
    copyFileSync(file, name, constants.COPYFILE_EXCL);
  }
}

/** The token of a file that only we, our group or root could have written; `null` for a missing or empty file. */
function readExisting(file: string, notice: Notice): string | null {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) return null;
  const token = readAdminToken(file) ?? '';
  if (token === '') return null;
  if (!isOurs(stats))
    throw new Error(
      `${file} belongs to another user: remove it, run chown ${process.getuid?.()} ${file}, or set TEXTGATE_ADMIN_TOKEN`,
    );
  if (token.length < minTokenLength)
    throw new Error(
      `${file} holds a token of fewer than ${minTokenLength} characters: remove it, and a new one is generated`,
    );
  checkMode(file, stats, notice);
  return token;
}

/**
 * Refuses a file that other users may have written. Makes a file private that they could only read, instead of refusing
 * it: a volume's mode is often set by its mount, so that the start would fail every time.
 */
function checkMode(file: string, stats: Stats, notice: Notice): void {
  if (hasBits(stats, othersWriteBit))
    throw new Error(
      `${file} can be written by every user: remove it, and a new token is generated, or set TEXTGATE_ADMIN_TOKEN`,
    );
  if (!hasBits(stats, groupBits | othersBits)) return;
  if (tighten(file)) return notice(`${file} could be read by other users: its mode has been set to 0600`);
  if (hasBits(stats, othersBits))
    throw new Error(`${file} can be read by every user: run chmod 600 ${file}, or set TEXTGATE_ADMIN_TOKEN`);
  if (!isOfOurGroup(stats))
    throw new Error(
      `${file} can be read or written by a group that is not ours: run chmod 600 ${file}, or set TEXTGATE_ADMIN_TOKEN`,
    );
  notice(
    `${file} can be read or written by its group: run chmod 600 ${file} unless the whole group is trusted`,
  );
}

/** Makes a file private; false when that is not permitted, or when its file system has no modes. */
function tighten(file: string): boolean {
  try {
    chmodSync(file, 0o600);
    return !hasBits(statSync(file), groupBits | othersBits);
  } catch {
    return false;
  }
}

/** Warns of a folder that every user can write in: any of them could replace the token's file. */
function checkFolder(folder: string, notice: Notice): void {
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (stats === undefined || !hasBits(stats, othersWriteBit) || hasBits(stats, stickyBit)) return;
  notice(
    `every user can write in the folder ${folder} of the admin token: run chmod o-w ${folder}, or set TEXTGATE_ADMIN_TOKEN`,
  );
}

/** Whether a file is owned by us or by root: root can read everything anyway, and owns what containers mount. */
function isOurs({ uid }: Stats): boolean {
  return process.getuid === undefined || uid === 0 || uid === process.getuid();
}

function isOfOurGroup({ gid }: Stats): boolean {
  return gid === process.getegid?.() || process.getgroups?.().includes(gid) === true;
}

/** Whether a mode has one of these bits; never on Windows, where they have no meaning. */
function hasBits({ mode }: Stats, bits: number): boolean {
  return process.platform !== 'win32' && (mode & bits) !== 0;
}

/** What decides where a generated admin token is. */
interface TokenSettings {
  /** The folder that the config names. */
  readonly tokenFolder: string | undefined;
  /** The URL of the database. */
  readonly databaseUrl: string;
  readonly configFile: string | undefined;
}

/**
 * The file of a generated admin token: in the folder that the config names, or else beside the real file of a SQLite
 * database, or else, where the database is no file, beside the config file. `null` where nothing says a folder: nodes on one
 * database would each make a token of their own.
 */
export function adminTokenPlace({ tokenFolder, databaseUrl, configFile }: TokenSettings): string | null {
  if (tokenFolder !== undefined) return join(tokenFolder, adminTokenName);
  const [, file] = /^sqlite:(.*)/.exec(databaseUrl) ?? [];
  if (file !== undefined && file !== ':memory:') return join(folderOf(file), adminTokenName);
  if (configFile !== undefined) return join(dirname(configFile), adminTokenName);
  return file === undefined ? null : oldAdminTokenFile;
}

/** The folder of a file: that to which a link leads, or else the one in its path, as it is written. */
function folderOf(file: string): string {
  const written = dirname(file);
  try {
    const real = dirname(realPlace(file));
    return real === realpathSync(written) ? written : real;
  } catch {
    // The folder is not there yet, and so no link either.
    return written;
  }
}

/** Whether two paths name one place. */
export function isSamePlace(one: string, other: string): boolean {
  return resolve(one) === resolve(other);
}
