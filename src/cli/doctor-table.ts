import type { Check, UpstreamReport } from '../doctor/report.ts';
import { escapeControlCharacters } from '../shared/control-characters.ts';

/** The width of the output, in columns. */
const maxColumns = 100;

/** The columns of the status and of a check's id; a longer id has a line of its own. */
const statusColumns = 9;
const idColumns = 20;

/** Where details begin, in columns. */
const detailColumn = 2 + statusColumns + idColumns;

/** One upstream's checks as a block of lines: status, check, detail, and the advice below it. */
export function writeBlock({ name, url, checks }: UpstreamReport): string {
  const head = escapeControlCharacters(`${name}: ${url}`);
  return [head, ...checks.flatMap(writeCheck), ''].join('\n');
}

function writeCheck({ status, id, detail, advice }: Check): readonly string[] {
  const details = wrap(escapeControlCharacters(detail));
  const advices = advice === null ? [] : wrap(`→ ${escapeControlCharacters(advice)}`);
  const head = `  ${status.padEnd(statusColumns)}${id}`;
  if (id.length >= idColumns) return [head, ...indent([...details, ...advices])];
  const [first = '', ...rest] = details;
  return [head.padEnd(detailColumn) + first, ...indent([...rest, ...advices])];
}

function indent(lines: readonly string[]): readonly string[] {
  return lines.map((line) => ' '.repeat(detailColumn) + line);
}

/** Breaks a text at blanks into lines that fit beside the first columns; a longer word stays whole. */
function wrap(text: string): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || detailColumn + last.length + 1 + word.length > maxColumns) lines.push(word);
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
