import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { generatedFile } from '../support/generated-file.ts';

const root = join(import.meta.dirname, '..', '..');

/** The index for programs, in the form of llmstxt.org: the README's first paragraph, and the pages of the index. */
function writeIndex(): string {
  const read = (path: string): string => readFileSync(join(root, path), 'utf8');
  const [, first = ''] = /^# textgate\n\n([^]+?)\n\n/.exec(read('README.md')) ?? [];
  const sections = read('docs/README.md')
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const [heading = ''] = section.split('\n', 1);
      const rows = [...section.matchAll(/^\| \[([^\]]+)\]\(([^)]+)\) \| (.+) \|$/gm)];
      const links = rows.map(([, title, path, answers]) => `- [${title}](${path}): ${answers}`);
      return `## ${heading}\n\n${links.join('\n')}\n`;
    });
  return `# textgate\n\n> ${first.replaceAll('\n', ' ')}\n\n${sections.join('\n')}`;
}

test('the index for programs has every page of the index', () => {
  const written = writeIndex();
  expect(generatedFile('docs/llms.txt', written)).toBe(written);
  expect(written.match(/^- \[/gm)?.length).toBeGreaterThan(20);
});
