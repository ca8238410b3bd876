import { pageTexts } from './pages.ts';

/** A fenced block of code on a page. */
export interface PageBlock {
  /** The page's path from the root of the checkout. */
  readonly page: string;
  /** The line of the block's first fence, from 1 on. */
  readonly line: number;
  /** What stands behind the first fence, such as `yaml`; empty without it. */
  readonly language: string;
  readonly text: string;
}

/** All fenced blocks of the documentation, in the order of pages and lines. */
export function pageBlocks(): readonly PageBlock[] {
  return pageTexts().flatMap(([page, text]) =>
    [...text.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].map(({ index, 1: language = '', 2: block = '' }) => ({
      page,
      line: text.slice(0, index).split('\n').length,
      language,
      text: block,
    })),
  );
}

/** The blocks of one page in one of these languages; throws if there are none. */
export function blocksOf(page: string, ...languages: readonly string[]): readonly PageBlock[] {
  const found = pageBlocks().filter((block) => block.page === page && languages.includes(block.language));
  if (found.length === 0) throw new Error(`${page} has no block in ${languages.join(' or ')}`);
  return found;
}
