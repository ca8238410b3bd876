import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const file = join(import.meta.dirname, '..', '..', 'README.md');

/**
 * The README with one of its sections as generated, and as it is. `UPDATE_README=1` writes the generated one, so that the
 * README describes behaviour that a test has observed.
 */
export function compareSection(
  name: string,
  content: string,
): { readonly wanted: string; readonly found: string } {
  const start = `<!-- ${name}: written by UPDATE_README=1 npm test -->\n`;
  const end = `\n<!-- end of ${name} -->`;
  const text = readFileSync(file, 'utf8');
  const [before, rest] = text.split(start);
  const [, after] = rest?.split(end) ?? [];
  if (after === undefined) throw new Error(`the README has no section '${name}'`);
  const wanted = `${before}${start}\n${content}\n${end}${after}`;
  if (process.env['UPDATE_README'] === '1') writeFileSync(file, wanted);
  return { wanted, found: readFileSync(file, 'utf8') };
}
