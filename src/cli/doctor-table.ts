import type { Check, UpstreamReport } from '../doctor/report.ts';
import { escapeControlCharacters } from '../shared/control-characters.ts';

/** The width of the output, in columns. */
const maxColumns = 100;

/** The columns of the status and of a check's id; a longer id is followed by its detail without a gap. */
const statusColumns = 9;
const idColumns = 20;

/** Where texts below a check's first line begin, in columns. */
const textColumn = 2 + statusColumns;

/** One upstream's checks as a block of lines: status, check, detail, and the advice below it. */
export function writeBlock({ name, url, checks }: UpstreamReport): string {
  const head = escapeControlCharacters(`${name}: ${url}`);
  return [head, ...checks.flatMap(writeCheck), ''].join('\n');
}

function writeCheck({ status, id, detail, advice }: Check): readonly string[] {
  const isShort = id.length < idColumns;
  const column = isShort ? textColumn + idColumns : textColumn;
  const shown = escapeControlCharacters(isShort ? detail : `${id}: ${detail}`);
  const [first = '', ...rest] = wrap(shown, column);
  const head = `  ${status.padEnd(statusColumns)}${isShort ? id.padEnd(idColumns) : ''}`;
  const advices = advice === null ? [] : wrap(`→ ${escapeControlCharacters(advice)}`, textColumn);
  return [head + first, ...indent(rest, column), ...indent(advices, textColumn)];
}

function indent(lines: readonly string[], column: number): readonly string[] {
  return lines.map((line) => ' '.repeat(column) + line);
}

/** Breaks a text at blanks into lines that fit from a column on; a longer word stays whole. */
function wrap(text: string, column: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || column + last.length + 1 + word.length > maxColumns) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

/** The last line: how many upstreams there are, and how many have faults or warnings. */
export function writeSummary(reports: readonly UpstreamReport[]): string {
  const count = (status: UpstreamReport['status']): number =>
    reports.filter((report) => report.status === status).length;
  const total = `${reports.length} ${reports.length === 1 ? 'upstream' : 'upstreams'}`;
  return `${total}: ${count('ok')} ok, ${count('warning')} with warnings, ${count('fault')} with faults`;
}

/** All reports as one JSON object. */
export function writeJson(reports: readonly UpstreamReport[]): string {
  return JSON.stringify({ object: 'doctor', upstreams: reports.map(presentReport) }, null, 2);
}

function presentReport({ name, url, status, checks }: UpstreamReport): object {
  return { name, url, status, checks: checks.map(presentCheck) };
}

/** Durations are rounded to whole milliseconds. */
function presentCheck({ id, status, detail, advice, ms }: Check): object {
  return { id, status, detail, advice, ms: ms === null ? null : Math.round(ms) };
}
