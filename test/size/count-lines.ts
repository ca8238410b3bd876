/** The lines of some text, by what is in them. Lines of punctuation alone, such as `});`, are in `lines` only. */
export interface Counts {
  readonly lines: number;
  /** Those with code: no blank ones, no comments, no imports, none of punctuation alone. */
  readonly code: number;
  readonly imports: number;
  readonly comments: number;
  readonly blank: number;
}

/** Counts the lines of a source. A line with code and a comment counts as code. */
export function countLines(source: string): Counts {
  const counts = { lines: 0, code: 0, imports: 0, comments: 0, blank: 0 };
  let inside: 'code' | 'comment' | 'import' = 'code';
  for (const line of source
    .replace(/\n$/, '')
    .split('\n')
    .map((text) => text.trim())) {
    counts.lines++;
    if (inside === 'code') inside = beginningOf(line);
    if (line === '') counts.blank++;
    else if (inside === 'comment') counts.comments++;
    else if (inside === 'import') counts.imports++;
    else if (line.startsWith('//')) counts.comments++;
    else if (/[\p{L}\d_$'"`]/u.test(line)) counts.code++;
    if (inside === 'comment' && /\*\/|-->/.test(line)) inside = 'code';
    else if (inside === 'import' && line.endsWith(';')) inside = 'code';
  }
  return counts;
}

function beginningOf(line: string): 'code' | 'comment' | 'import' {
  if (/^(?:\/\*|<!--)/.test(line)) return 'comment';
  return /^(?:import\b(?![(.])|export (?:type )?\{.*\} from |export (?:type )?\{$)/.test(line)
    ? 'import'
    : 'code';
}

/** The sum of what several sources have. */
export function sumCounts(all: readonly Counts[]): Counts {
  const sum = (key: keyof Counts): number => all.reduce((total, counts) => total + counts[key], 0);
  return {
    lines: sum('lines'),
    code: sum('code'),
    imports: sum('imports'),
    comments: sum('comments'),
    blank: sum('blank'),
  };
}
