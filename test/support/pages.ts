import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

/** The pages of the documentation: their paths from the root of the checkout, and their texts. */
export function pageTexts(): readonly (readonly [path: string, text: string])[] {
  const paths = globSync(['*.md', 'docs/**/*.md', 'src/README.md'], { cwd: root });
  return paths.map((path) => [path, readFileSync(join(root, path), 'utf8')] as const);
}
