import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

/** Files with the relative paths that they import, read once. */
const known = new Map<string, readonly string[]>();

/** How many imports are between a file and another one, as paths in the checkout; infinitely many if it is not reached. */
export function importsBetween(file: string, target: string): number {
  let reached = new Set([file]);
  const seen = new Set(reached);
  for (let steps = 0; reached.size > 0; steps++) {
    if (reached.has(target)) return steps;
    reached = new Set([...reached].flatMap(importsOf).filter((next) => !seen.has(next)));
    for (const next of reached) seen.add(next);
  }
  return Infinity;
}

function importsOf(file: string): readonly string[] {
  const read = known.get(file);
  if (read !== undefined) return read;
  const path = join(root, file);
  // A test may have the imports of other files as texts, and those of types load nothing.
  const source = file.endsWith('.ts') && existsSync(path) ? readFileSync(path, 'utf8') : '';
  const imports = [...source.matchAll(/(?:^(?:im|ex)port (?!type)[^;]*?from|import)\s*\(?\s*'(\.[^']+)'/gm)];
  const paths = imports.map(([, to = '']) => join(dirname(file), to));
  known.set(file, paths);
  return paths;
}
