import { anchorOf, escapeHtml, framePage, relativePath, searchPath } from './page-frame.ts';

/** The part of a page below one of its headings. */
export interface Section {
  /** The page's place below the documentation, and its title. */
  readonly place: string;
  readonly page: string;
  /** `null` for what comes before the first heading below the title. */
  readonly heading: string | null;
  readonly text: string;
}

/** How much of a search is read, in characters, and how many sections are shown. */
const maxQuery = 200;
const maxShown = 50;

/** How many characters of a section are shown around the first word that was found. */
const excerptLength = 200;

/** The sections of a page. A line within a block of code is no heading. */
export function splitSections(markdown: string, place: string): readonly Section[] {
  const page = plainText(/^# (.+)$/m.exec(markdown)?.[1] ?? 'textgate');
  const parts = markdown.replaceAll(/^(```[^]*?^```)$/gm, (block) => block.replaceAll(/^#/gm, ' #'));
  return parts.split(/^(?=##+ )/m).map((part) => {
    const [, heading = null] = /^##+ (.+)$/m.exec(part) ?? [];
    const text = part.replace(/^#+ .+$/m, '').trim();
    return { place, page, heading: heading && plainText(heading), text };
  });
}

/** The sections that have all words of a text, those first whose headings have them. */
function findSections(sections: readonly Section[], query: string): readonly Section[] {
  const words = wordsOf(query);
  if (words.length === 0) return [];
  const hasAll = (text: string): boolean => {
    const lower = text.toLowerCase();
    return words.every((word) => lower.includes(word));
  };
  const titleOf = ({ page, heading }: Section): string => `${page} ${heading ?? ''}`;
  const found = sections.filter((section) => hasAll(`${titleOf(section)} ${section.text}`));
  const [titled, others] = [true, false].map((isTitled) =>
    found.filter((section) => hasAll(titleOf(section)) === isTitled),
  );
  return [...(titled ?? []), ...(others ?? [])];
}

function wordsOf(query: string): readonly string[] {
  return query.slice(0, maxQuery).toLowerCase().split(/\s+/).filter(Boolean);
}

/** The page of a search, with links to the sections that were found. */
export function renderFound(sections: readonly Section[], query: string): string {
  const found = findSections(sections, query);
  const shown = found.slice(0, maxShown);
  const count = found.length > maxShown ? `The first ${maxShown} of ${found.length}` : String(found.length);
  const body = `<h1>Search</h1>
<p>${wordsOf(query).length === 0 ? 'Enter a word.' : `Sections with all of these words: ${count}.`}</p>
<ol>
${shown.map((section) => renderItem(section, query)).join('\n')}
</ol>
`;
  return framePage({ title: 'Search', place: searchPath, body, searched: query.slice(0, maxQuery) });
}

function renderItem({ place, page, heading, text }: Section, query: string): string {
  const target = relativePath(searchPath, place) + (heading === null ? '' : `#${anchorOf(heading)}`);
  const title = heading === null ? page : `${page} › ${heading}`;
  return `<li><a href="${escapeHtml(target)}">${escapeHtml(title)}</a><br>${escapeHtml(excerptOf(text, query))}</li>`;
}

function excerptOf(text: string, query: string): string {
  const plain = plainText(text).replaceAll(/\s+/g, ' ');
  const places = wordsOf(query)
    .map((word) => plain.toLowerCase().indexOf(word))
    .filter((place) => place >= 0);
  // The words may be in the heading alone.
  const first = places.length === 0 ? 0 : Math.min(...places);
  const from = Math.max(0, Math.min(first - excerptLength / 4, plain.length - excerptLength));
  const excerpt = plain.slice(from, from + excerptLength);
  return `${from > 0 ? '…' : ''}${excerpt}${from + excerptLength < plain.length ? '…' : ''}`;
}

/** A text without the signs of Markdown: of a link its words. */
function plainText(markdown: string): string {
  return markdown.replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/[`*]|^[|>#-]+ ?/gm, '');
}
