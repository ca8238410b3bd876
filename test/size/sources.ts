import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readScript } from '../support/script-options.ts';
import { countLines, sumCounts } from './count-lines.ts';
import type { Counts } from './count-lines.ts';

/** Prints how large each folder of src is. */
readScript({ name: 'size', options: {} });

const root = join(import.meta.dirname, '..', '..', 'src');

const folders = new Map<string, Counts[]>();
for (const file of globSync('**/*.{ts,js,css,html}', { cwd: root }).toSorted()) {
  const folder = file.includes('/') ? file.slice(0, file.indexOf('/')) : '(top)';
  const counts = countLines(readFileSync(join(root, file), 'utf8'));
  folders.set(folder, [...(folders.get(folder) ?? []), counts]);
}

print('folder', ['files', 'lines', 'code', 'imports', 'comments', 'blank', 'median']);
for (const [folder, files] of [...folders].toSorted(
  ([, a], [, b]) => sumCounts(b).lines - sumCounts(a).lines,
))
  printFiles(folder, files);
printFiles('all', [...folders.values()].flat());

function printFiles(name: string, files: readonly Counts[]): void {
  const { lines, code, imports, comments, blank } = sumCounts(files);
  const median = files.map((file) => file.lines).toSorted((a, b) => a - b)[files.length >> 1] ?? 0;
  print(name, [files.length, lines, code, imports, comments, blank, median]);
}

function print(name: string, columns: readonly (string | number)[]): void {
  process.stdout.write(`${name.padEnd(14)}${columns.map((column) => String(column).padStart(9)).join('')}\n`);
}
