import type { Check, UpstreamReport } from '../../doctor/report.ts';
import { presentDoctor } from '../../http/present/doctor.ts';
import { escapeControlCharacters } from '../../shared/control-characters.ts';
import { count } from '../../shared/count.ts';
import { maxColumns, wrap } from '../output.ts';

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
  const [first = '', ...rest] = wrap(shown, maxColumns - column);
  const head = `  ${status.padEnd(statusColumns)}${isShort ? id.padEnd(idColumns) : ''}`;
  const advices =
    advice === null ? [] : wrap(`→ ${escapeControlCharacters(advice)}`, maxColumns - textColumn);
  return [head + first, ...indent(rest, column), ...indent(advices, textColumn)];
}

function indent(lines: readonly string[], column: number): readonly string[] {
  return lines.map((line) => ' '.repeat(column) + line);
}

/** The last line: how many upstreams there are, where they are configured, and how many have faults or warnings. */
export function writeSummary(reports: readonly UpstreamReport[], of: string | null): string {
  const having = (status: UpstreamReport['status']): number =>
    reports.filter((report) => report.status === status).length;
  const place = of === null ? '' : ` of ${escapeControlCharacters(of)}`;
  return `${count(reports.length, 'upstream')}${place}: ${having('ok')} ok, ${having('warning')} with warnings, ${having('fault')} with faults`;
}

/** All reports as one JSON object. */
export function writeJson(reports: readonly UpstreamReport[]): string {
  return JSON.stringify(presentDoctor(reports), null, 2);
}
