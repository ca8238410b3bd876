import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

/** The content of a generated file of the checkout; `UPDATE_README=1` writes it first. */
export function generatedFile(path: string, content: string): string {
  const file = join(root, path);
  if (process.env['UPDATE_README'] === '1') writeFileSync(file, content);
  return readFileSync(file, 'utf8');
}
