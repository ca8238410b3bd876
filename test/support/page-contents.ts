/** A heading of a page: its level, 1 for the title, and its text. */
interface Heading {
  readonly level: number;
  readonly text: string;
}

/** A line of a table of contents. */
const entry = /^ *- \[.+\]\(#.+\)$/;

/** The headings of a page, in their order. Comments in blocks of code can look like headings. */
export function headingsOf(text: string): readonly Heading[] {
  const prose = text.replaceAll(/^```[^]*?^```/gm, '');
  return [...prose.matchAll(/^(#+) (.+)$/gm)].map(([, marks = '', heading = '']) => ({
    level: marks.length,
    text: heading,
  }));
}

/** The anchor of a heading, as GitHub makes it. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

/** The page with a table of its sections, and of the parts of these, in place of the one before its first section. */
export function withContents(page: string): string {
  const contents = headingsOf(page)
    .filter(({ level }) => level === 2 || level === 3)
    .map(({ level, text }) => `${level === 3 ? '  ' : ''}- [${text}](#${anchorOf(text)})`);
  const lines = page.split('\n');
  const section = lines.findIndex((line) => line.startsWith('## '));
  const before = lines.slice(0, section);
  const first = before.findIndex((line) => entry.test(line));
  const rest = lines.slice(section);
  if (first === -1) return [...before, ...contents, '', ...rest].join('\n');
  const after = before.findIndex((line, index) => index > first && !entry.test(line));
  return [...before.slice(0, first), ...contents, ...before.slice(after), ...rest].join('\n');
}
