import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

/** How long the compiler may take, in milliseconds. */
const buildMs = 120_000;

/** The builds of this run by their checkouts. */
const builds = new Map<string, Promise<string>>();

/**
 * Builds a checkout as its package and its container image are built, because the sources need more memory and time to
 * start. Resolves with the module to run, in a folder that lives as long as this process.
 */
export function buildCheckout(checkout: string): Promise<string> {
  const found = builds.get(checkout) ?? build(resolve(checkout));
  builds.set(checkout, found);
  return found;
}

async function build(checkout: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-build-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const modules = join(checkout, 'node_modules');
  const project = join(checkout, 'config', 'tsconfig.build.json');
  const compiler = join(modules, 'typescript', 'bin', 'tsc');
  const args = [compiler, '-p', project, '--outDir', join(folder, 'dist')];
  await promisify(execFile)(process.execPath, args, { timeout: buildMs });
  cpSync(join(checkout, 'package.json'), join(folder, 'package.json'));
  symlinkSync(modules, join(folder, 'node_modules'));
  return join(folder, 'dist', 'main.js');
}
