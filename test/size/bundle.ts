import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { buildBundle } from '../support/bundle.ts';
import { packagesOf } from '../support/loaded-files.ts';
import { readScript } from '../support/script-options.ts';

/** Prints what the bundle of the image has, in KB by package. */
readScript({ name: 'size bundle', options: {} });

/** The smallest part that has a line of its own, in bytes. */
const minBytes = 50_000;

const bundle = await buildBundle();
const sizes = new Map<string, number>();
const add = (part: string, bytes: number): void => void sizes.set(part, (sizes.get(part) ?? 0) + bytes);
for (const { modules } of bundle.chunks)
  for (const [id, { renderedLength }] of Object.entries(modules))
    add(packagesOf([id])[0] ?? 'textgate', renderedLength);
const folder = join(bundle.folder, 'third-party');
for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true }))
  if (entry.isFile()) add('manifests and licences', statSync(join(entry.parentPath, entry.name)).size);
bundle.remove();

const all = [...sizes].toSorted(([, a], [, b]) => b - a);
const sum = (parts: readonly (readonly [string, number])[]): number =>
  parts.reduce((total, [, bytes]) => total + bytes, 0);
const shown = all.filter(([, bytes]) => bytes >= minBytes);
const rest = all.filter(([, bytes]) => bytes < minBytes);
for (const [part, bytes] of [...shown, [`${rest.length} others`, sum(rest)], ['all', sum(all)]] as const)
  process.stdout.write(
    `${part.padEnd(40)}${Math.round(bytes / 1_000)
      .toString()
      .padStart(8)} KB\n`,
  );
