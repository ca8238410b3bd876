import { existsSync, linkSync, lstatSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Throws where a config file can't be written, before any work is done for it. */
export function refuseOutput(file: string, force: boolean): void {
  // A symbolic link that leads nowhere is there, too.
  const there = lstatSync(file, { throwIfNoEntry: false });
  if (there?.isDirectory() === true) throw new Error(`${file} is a folder: name a file with --output`);
  if (there !== undefined && !force)
    throw new Error(`${file} is there already: name another file with --output, or replace it with --force`);
  if (!existsSync(dirname(file)))
    throw new Error(
      `the folder ${dirname(file)} is not there: create it, or name another file with --output`,
    );
}

/** Writes a config file as a whole or not at all. One that is there is replaced only by `force`. */
export function writeConfigFile(file: string, text: string, force: boolean): void {
  // Not the link itself, where the file is one.
  const target = force && existsSync(file) ? realpathSync(file) : file;
  const partial = `${target}.${process.pid}.partial`;
  try {
    writeFileSync(partial, text, { flag: 'wx' });
    if (force) renameSync(partial, target);
    // Unlike a renaming, a link does not replace what another process has written meanwhile.
    else linkSync(partial, file);
  } catch (error) {
    refuseOutput(file, force);
    throw error;
  } finally {
    rmSync(partial, { force: true });
  }
}

/** The name of a file as a word of a shell, for a command that is printed. */
export function shellWord(file: string): string {
  return /^[\w./-]+$/.test(file) ? file : `'${file.replaceAll("'", `'\\''`)}'`;
}
