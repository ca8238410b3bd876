import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

/**
 * The content of a generated file of the checkout. `UPDATE_README=1` writes it first if it differs: other tests read these
 * files meanwhile, and would find one half written.
 */
export function generatedFile(path: string, content: string): string {
  const file = join(root, path);
  const isSame = (): boolean => existsSync(file) && readFileSync(file, 'utf8') === content;
  if (process.env['UPDATE_README'] === '1' && !isSame()) writeFileSync(file, content);
  return readFileSync(file, 'utf8');
}
