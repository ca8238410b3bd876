import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

/** How long an installation may take, in milliseconds. */
const installMs = 120_000;

/** Installs what the manifest in its folder names. */
export type Installer = (folder: string) => Promise<unknown>;

const npmInstall: Installer = (folder) =>
  promisify(execFile)('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: folder,
    timeout: installMs,
  });

/**
 * Installs packages into a folder, unless an earlier run has. They are installed under a fresh name beside it and moved
 * into place when complete: what an installation that was cut off has left is never run.
 */
export async function installOnce(
  folder: string,
  manifest: object,
  install: Installer = npmInstall,
): Promise<void> {
  if (existsSync(folder)) return;
  mkdirSync(dirname(folder), { recursive: true });
  const fresh = mkdtempSync(`${folder}-`);
  try {
    writeFileSync(`${fresh}/package.json`, JSON.stringify(manifest));
    await install(fresh);
    renameSync(fresh, folder);
  } catch (error) {
    // Another run may have moved its own into place in the meantime.
    if (!existsSync(folder)) throw error;
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
}
