import type { PresentedStatusRow } from '../../http/present/status.ts';
import { cell, widthOf } from '../../telemetry/log/terminal-text.ts';
import { columnGap, writeTable, writeMs, writePosition } from '../output.ts';

/** The orders of the requests, by the names that are shown. */
export const sortNames = ['oldest first', 'by key', 'by model', 'by upstream', 'by first text'] as const;

export type SortName = (typeof sortNames)[number];

type Compare = (one: PresentedStatusRow, other: PresentedStatusRow) => number;

const byText =
  (read: (row: PresentedStatusRow) => string | null): Compare =>
  (one, other) =>
    (read(one) ?? '').localeCompare(read(other) ?? '');

const orders: Readonly<Record<SortName, Compare>> = {
  // As the gateway lists them.
  'oldest first': () => 0,
  'by key': byText(nameOfKey),
  'by model': byText(({ model }) => model),
  'by upstream': byText(({ upstream }) => upstream),
  // Those without text first, then the slowest ones.
  'by first text': (one, other) => (other.first_text_ms ?? Infinity) - (one.first_text_ms ?? Infinity) || 0,
};

/** A key's name, or its id where the name is not known. */
export function nameOfKey({ key_name: name, key_id: id }: PresentedStatusRow): string {
  return name ?? id ?? '-';
}

/** Those of the requests in which a text occurs, in an order. Equal ones stay in the order of their arrival. */
export function selectRows(
  rows: readonly PresentedStatusRow[],
  filter: string,
  sort: SortName,
): readonly PresentedStatusRow[] {
  const wanted = filter.toLowerCase();
  const found =
    wanted === '' ? rows : rows.filter((row) => textsOf(row).some((text) => text.includes(wanted)));
  return found.toSorted(orders[sort]);
}

function textsOf(row: PresentedStatusRow): readonly string[] {
  const { request_id: id, key_id: keyId, protocol, mode, model, upstream, node, waits_for: waits } = row;
  const others = [row.joined, ...(row.waits_at ?? [])];
  return [id, nameOfKey(row), keyId, protocol, mode, model, upstream, node, waits, ...others].map((text) =>
    (text ?? '').toLowerCase(),
  );
}

/** A column of the requests in progress. */
interface Column {
  readonly title: string;
  readonly read: (row: PresentedStatusRow, nowMs: number) => string;
  /** The least width, in columns of the terminal; cells are cut down to it. */
  readonly least: number;
  readonly isRight?: true;
  /** Whether it says something of a request; without it, it does of each. Where it says nothing of any, it is left out. */
  readonly says?: (row: PresentedStatusRow) => boolean;
}

const idChars = 8;

function endOf(id: string): string {
  return id.slice(-idChars);
}

/** By importance: where a line has no room for all, the last ones are left out. */
const columns: readonly Column[] = [
  { title: 'REQUEST', least: idChars, read: ({ request_id: id }) => endOf(id) },
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
  {
    title: 'CLIENTS',
    least: 7,
    isRight: true,
    read: clientsOf,
    says: ({ listening }) => listening !== null,
  },
  { title: 'MODE', least: 6, read: ({ mode }) => mode ?? '-' },
  { title: 'PROTOCOL', least: 9, read: ({ protocol }) => protocol ?? '-' },
  { title: 'NODE', least: 10, read: ({ node }) => node ?? '-', says: ({ node }) => node !== null },
];

/** A table of requests: the line of its titles, and one line for each. No line is wider than `width`. */
export function writeRows(
  rows: readonly PresentedStatusRow[],
  nowMs: number,
  width: number,
): { readonly head: string; readonly lines: readonly string[] } {
  const known = columns.filter(({ says }) => says === undefined || rows.some(says));
  let left = width + columnGap.length;
  const shown = known.filter(({ least }) => (left -= least + columnGap.length) >= 0);
  // With titles of the least width, columns stay where they are when their cells get shorter.
  const titles = shown.map(({ title, least, isRight }) =>
    isRight === true ? title.padStart(least) : title.padEnd(least),
  );
  const table = writeTable(
    titles,
    rows.map((row) => shown.map(({ read }) => read(row, nowMs))),
    {
      right: titles.filter((_title, column) => shown[column]?.isRight === true),
      cut: titles,
      width,
      measure: { widthOf, cell },
    },
  );
  const [head = '', ...lines] = table.split('\n').map((line) => cell(line, width));
  return { head, lines };
}

function firstTextOf(row: PresentedStatusRow): string {
  const { first_text_ms: firstTextMs, waits_for: waits, position, expected_wait_ms: expectedMs } = row;
  if (position !== null) return writePosition(position, expectedMs);
  if (waits !== null) return `waits for ${waits}`;
  if (row.joined !== null) return `joins ${endOf(row.joined)}`;
  return firstTextMs === null ? 'none yet' : writeMs(firstTextMs);
}

/** How many clients get the answer of a request that others may join; without any it goes on for a while. */
function clientsOf({ listening }: PresentedStatusRow): string {
  if (listening === null) return '-';
  return listening === 0 ? 'none' : String(listening);
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
