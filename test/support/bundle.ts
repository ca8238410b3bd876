import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { build } from 'rolldown';
import type { OutputChunk } from 'rolldown';
import { buildBinary, filesBeside } from '../../config/build-binary.ts';
import config from '../../config/rolldown.config.ts';

const root = join(import.meta.dirname, '..', '..');

/** The bundle that the image has, built into a folder of its own. */
export interface Bundle {
  /** The file of the program. */
  readonly program: string;
  /** The folder with the chunks, and with `third-party/`. */
  readonly folder: string;
  readonly chunks: readonly OutputChunk[];
  /** Makes an executable of it, as `npm run binary` does; returns the path. */
  makeBinary(): string;
  /** The paths of the modules in a chunk's file. */
  modulesIn(file: string): readonly string[];
  remove(): void;
}

/** Builds the bundle as `npm run bundle` does. */
export async function buildBundle(): Promise<Bundle> {
  const place = mkdtempSync(join(tmpdir(), 'textgate-bundle-'));
  for (const name of filesBeside) cpSync(join(root, name), join(place, name), { recursive: true });
  const folder = join(place, 'dist', 'bundle');
  const { output } = await build({ ...config, output: { ...config.output, dir: folder } });
  const chunks = output.filter((file) => file.type === 'chunk');
  return {
    program: join(folder, 'main.js'),
    folder,
    chunks,
    makeBinary: () => buildBinary(place, join(place, 'dist', 'binary')),
    modulesIn: (file) => chunks.find(({ fileName }) => fileName === basename(file))?.moduleIds ?? [],
    remove: () => rmSync(place, { recursive: true, force: true }),
  };
}
