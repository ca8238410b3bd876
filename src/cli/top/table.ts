import type { PresentedStatusRow } from '../../http/present/status.ts';
import { cell, widthOf } from '../../telemetry/log/terminal-text.ts';
import { writeMs } from '../write-ms.ts';
import { writePlace } from '../write-place.ts';
import { nameOfKey } from './rows.ts';

/** A column of the requests in progress. */
interface Column {
  readonly title: string;
  readonly read: (row: PresentedStatusRow, nowMs: number) => string;
  /** The least width, in columns of the terminal; cells are cut down to it. The title's width if none is given. */
  readonly least?: number;
  readonly isRight?: true;
}

const idChars = 8;

/** By importance: where a line has no room for all, the last ones are left out. */
const columns: readonly Column[] = [
  { title: 'REQUEST', least: idChars, read: ({ request_id: id }) => id.slice(-idChars) },
  {
    title: 'FOR',
    least: 7,
    isRight: true,
    read: ({ created_at: at }, nowMs) => ageOf(nowMs - Date.parse(at)),
  },
  { title: 'FIRST TEXT', least: 14, isRight: true, read: firstTextOf },
  { title: 'KEY', least: 10, read: nameOfKey },
  { title: 'MODEL', least: 12, read: ({ model }) => model ?? '-' },
  { title: 'UPSTREAM', least: 10, read: upstreamOf },
  { title: 'MODE', least: 6, read: ({ mode }) => mode ?? '-' },
  { title: 'PROTOCOL', least: 9, read: ({ protocol }) => protocol ?? '-' },
  { title: 'NODE', least: 10, read: ({ node }) => node ?? '-' },
];

const gap = '  ';

/** A table of requests: the line of its titles, and one line for each. No line is wider than `width`. */
export function writeRows(
  rows: readonly PresentedStatusRow[],
  nowMs: number,
  width: number,
): { readonly head: string; readonly lines: readonly string[] } {
  const known = columns.filter(({ title }) => title !== 'NODE' || rows.some(({ node }) => node !== null));
  const cells = rows.map((row) => known.map(({ read }) => read(row, nowMs)));
  const widths = fit(
    known.map(({ title, least = title.length }) => least),
    known.map(({ title, least = 0 }, at) =>
      Math.max(title.length, least, ...cells.map((line) => widthOf(line[at] ?? ''))),
    ),
    width,
  );
  const write = (texts: readonly string[]): string =>
    widths.map((each, at) => align(texts[at] ?? '', each, known[at]?.isRight === true)).join(gap);
  return { head: write(known.map(({ title }) => title)), lines: cells.map(write) };
}

/** The widths of those columns for which there is room: each the least one, and more while there is room for more. */
function fit(least: readonly number[], wanted: readonly number[], width: number): readonly number[] {
  const widths: number[] = [];
  let left = width + gap.length;
  for (const each of least) {
    if (each + gap.length > left) break;
    widths.push(each);
    left -= each + gap.length;
  }
  for (;;) {
    const at = narrowest(widths, wanted);
    if (at === null || left === 0) return widths;
    widths[at] = (widths[at] ?? 0) + 1;
    left--;
  }
}

/** The place of the narrowest column that wants to be wider; `null` without one. */
function narrowest(widths: readonly number[], wanted: readonly number[]): number | null {
  let found: number | null = null;
  for (const [at, each] of widths.entries())
    if (each < (wanted[at] ?? 0) && (found === null || each < (widths[found] ?? 0))) found = at;
  return found;
}

function align(text: string, width: number, isRight: boolean): string {
  return isRight && widthOf(text) <= width ? text.padStart(width) : cell(text, width);
}

function firstTextOf(row: PresentedStatusRow): string {
  const { first_text_ms: firstTextMs, waits_for: waits, position, expected_wait_ms: expectedMs } = row;
  if (position !== null && expectedMs !== null) return writePlace(position, expectedMs);
  if (waits !== null) return `waits for ${waits}`;
  return firstTextMs === null ? 'none yet' : writeMs(firstTextMs);
}

/** The upstream that was called last, or those that a request waits for. */
function upstreamOf({ upstream, waits_at: waitsAt }: PresentedStatusRow): string {
  return upstream ?? waitsAt?.join(', ') ?? '-';
}

const minuteMs = 60_000;
const hourMs = 3_600_000;

/** A number below 100 in two digits. */
function two(number: number): string {
  return String(Math.floor(number)).padStart(2, '0');
}

/** How long a request has been there: `7.1 s`, `12m05s`, `3h20m`. */
function ageOf(milliseconds: number): string {
  const age = Math.max(0, milliseconds);
  if (age < minuteMs) return `${(age / 1_000).toFixed(1)} s`;
  if (age < hourMs) return `${Math.floor(age / minuteMs)}m${two((age % minuteMs) / 1_000)}s`;
  return `${Math.floor(age / hourMs)}h${two((age % hourMs) / minuteMs)}m`;
}
