import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

/** How long the bundler may take, in milliseconds. */
const buildMs = 120_000;

/** The builds of this run by their checkouts. */
const builds = new Map<string, Promise<string>>();

/**
 * Bundles a checkout as its start, its package and its image do, because the sources need more memory and time to start.
 * Resolves with the module to run, in a folder that lives as long as this process.
 */
export function buildCheckout(checkout: string): Promise<string> {
  const found = builds.get(checkout) ?? build(resolve(checkout));
  builds.set(checkout, found);
  return found;
}

async function build(checkout: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-build-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const bundler = join(checkout, 'node_modules', 'rolldown', 'bin', 'cli.mjs');
  const program = join(folder, 'dist', 'bundle');
  const args = [
    bundler,
    '-c',
    join(checkout, 'config', 'rolldown.config.ts'),
    '--configLoader',
    'native',
    '--dir',
    program,
  ];
  await promisify(execFile)(process.execPath, args, { timeout: buildMs });
  cpSync(join(checkout, 'package.json'), join(folder, 'package.json'));
  return join(program, 'main.js');
}
