import type { PresentedStatus, PresentedStatusRow } from '../../http/present/status.ts';
import { cell } from '../../telemetry/log/terminal-text.ts';
import { writeSummary, writeUpstreams } from './print-status.ts';
import type { Paint } from './print-status.ts';
import { writeRows } from './rows.ts';
import type { TopState } from './top-state.ts';

/** What is drawn, and where. */
export interface Scene {
  readonly status: PresentedStatus;
  /** The requests that are shown, in their order. */
  readonly rows: readonly PresentedStatusRow[];
  readonly state: TopState;
  /** The gateway's time, in milliseconds since 1970. */
  readonly nowMs: number;
  /** Why nothing new comes; `null` while the gateway answers. */
  readonly lost: string | null;
  readonly width: number;
  readonly height: number;
  readonly paint: Paint;
}

/** Of the lines of a terminal, the share that upstreams may take: one in so many. */
const upstreamShare = 4;

const mark = '> ';
const noMark = '  ';

/** A screen of lines, each exactly as wide as the terminal, and not more than it has. */
export function drawScreen(scene: Scene): readonly string[] {
  const { status, rows, state, width, height, paint } = scene;
  const most = Math.max(1, Math.floor(height / upstreamShare));
  const top = [
    ...writeSummary(status, width, paint),
    ...writeUpstreams(status.upstreams, most, width, paint),
    cell('', width),
  ];
  const room = Math.max(1, height - top.length - 3);
  const at = Math.max(
    0,
    rows.findIndex(({ request_id: id }) => id === state.selected),
  );
  const start = Math.floor(at / room) * room;
  const page = rows.slice(start, start + room);
  const table = writeRows(page, scene.nowMs, width - mark.length);
  const lines = table.lines.map((line, index) =>
    drawRow(line, page[index]?.request_id === state.selected, scene),
  );
  const head = paint('bold', cell(noMark + table.head, width));
  const blank = Array.from({ length: Math.max(0, room - lines.length) }, () => cell('', width));
  const all = [
    ...top,
    head,
    ...lines,
    ...blank,
    cell(describeList(scene, start, page.length), width),
    foot(scene),
  ];
  return all
    .slice(0, Math.max(0, height - 1))
    .concat(all.slice(-1))
    .slice(-height);
}

function drawRow(line: string, isSelected: boolean, { width, paint }: Scene): string {
  const text = cell((isSelected ? mark : noMark) + line, width);
  return isSelected ? paint('inverse', text) : text;
}

/** Which of the requests are shown, in which order. */
function describeList({ status, rows, state }: Scene, start: number, shown: number): string {
  const { data, running, waiting } = status.in_flight;
  const range = shown === 0 ? 'none' : `${start + 1} to ${start + shown} of ${rows.length}`;
  const filter = state.filter === '' ? '' : ` with "${state.filter}"`;
  const read = status.in_flight.has_more
    ? ` (the oldest ${data.length} of ${running + waiting} were read)`
    : '';
  return `requests: ${range}${filter}, ${state.sort}${read}`;
}

/** The last line: a question, what has just happened, or the keys. */
function foot({ state, lost, width, paint }: Scene): string {
  if (state.asked !== null)
    return paint('yellow', cell(`cancel ${state.asked.label}? y: yes, any other key: no`, width));
  if (state.isTyping)
    return paint('yellow', cell(`filter: ${state.filter}_  (Enter keeps it, Esc removes it)`, width));
  if (lost !== null) return paint('red', cell(`connection lost, trying again: ${lost}`, width));
  if (state.notice !== null) return paint('yellow', cell(state.notice, width));
  const paused = state.isPaused ? 'PAUSED  ' : '';
  return paint('dim', cell(`${paused}j/k select  s sort  / filter  c cancel  p pause  q quit`, width));
}
