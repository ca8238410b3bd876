import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pageTexts } from './pages.ts';

const root = join(import.meta.dirname, '..', '..');

/**
 * The page of the documentation that has a section, with the section as generated and as it is. `UPDATE_README=1` writes
 * the generated one, so that the documentation describes behaviour that a test has observed.
 */
export function compareSection(
  name: string,
  content: string,
): { readonly wanted: string; readonly found: string } {
  const start = `<!-- ${name}: written by UPDATE_README=1 npm test -->\n`;
  const end = `\n<!-- end of ${name} -->`;
  const pages = pageTexts().filter(([, text]) => text.includes(start) && text.includes(end));
  const [page] = pages;
  if (page === undefined || pages.length > 1)
    throw new Error(`expected the section '${name}' on one page, found it on ${pages.length}`);
  const [path, text] = page;
  const [before, rest = ''] = text.split(start);
  const [, after = ''] = rest.split(end);
  const wanted = `${before}${start}\n${content}\n${end}${after}`;
  if (process.env['UPDATE_README'] === '1') writeFileSync(join(root, path), wanted);
  return { wanted, found: readFileSync(join(root, path), 'utf8') };
}
