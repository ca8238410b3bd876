import { isFailed } from '../../domain/money/consumption.ts';
import { cell, wrap } from './terminal-text.ts';

/** The fields of an attempt in the line of a request. */
interface AttemptFields {
  readonly upstream: string;
  readonly result: string;
  readonly cause?: string | null;
  readonly upstreamError?: { readonly code: string | null; readonly message: string | null } | null;
}

/** The fields of a log line that are shown; those of a request's line, and those of any other. */
export interface LineFields {
  readonly time: number;
  readonly level: number;
  readonly msg: string;
  readonly protocol?: string;
  readonly model?: string | null;
  readonly requestedModel?: string | null;
  readonly upstream?: string | null;
  readonly refusedBy?: readonly string[];
  readonly outcome?: string;
  readonly status?: number;
  readonly code?: string | null;
  readonly replayOf?: string;
  readonly cause?: string | null;
  readonly inputTokens?: number | null;
  readonly outputTokens?: number | null;
  readonly firstTextMs?: number | null;
  readonly totalMs?: number;
  readonly keyId?: string | null;
  readonly keyName?: string | null;
  readonly actor?: string | null;
  readonly action?: string;
  readonly subject?: string | null;
  readonly requestId?: string;
  readonly attempts?: readonly AttemptFields[];
  readonly result?: string;
  readonly reason?: string;
  readonly count?: number;
  readonly names?: readonly string[];
  readonly counts?: object;
  readonly lines?: number;
  readonly trialAfterMs?: number;
  readonly worker?: number;
  readonly root?: number;
  readonly hash?: string;
}

/** Colours and emphasis; what the terminal can't show is left out. */
type Style = 'green' | 'cyan' | 'yellow' | 'red' | 'dim' | 'bold';

/** A terminal: its width in columns, and how text is coloured for it. */
export interface Terminal {
  readonly columns: number;
  readonly paint: (style: Style, text: string) => string;
}

/** The widths between which lines adapt to the terminal's, in columns. */
const minColumns = 80;
const maxColumns = 100;

/**
 * The widths of the columns of a request's line. Route and result share what the others leave: at 100 columns, the
 * longest error code fits.
 */
const resultShare = 0.57;
const longestResult = 26;
const protocolColumns = 4;
const timeColumns = 6;
const keyColumns = 11;
const idColumns = 8;
const fixedColumns = 8 + 3 + protocolColumns + 2 * timeColumns + keyColumns + idColumns + 8;

/** The indentation of further lines, below the status of a request. */
const indent = ' '.repeat(9);

/**
 * Formats a log line for a terminal, with its line feed: a request as one aligned line, followed by the cause of each
 * failed attempt; anything else as its level, message and fields. Control sequences and line breaks are escaped, since
 * names and causes may come from upstreams; a further line is always indented, so that none can be forged.
 */
export function terminalLine(line: LineFields, { columns, paint }: Terminal): string {
  const terminal = { columns: Math.min(maxColumns, Math.max(minColumns, columns)), paint };
  const lines = line.msg === 'request' ? requestLines(line, terminal) : messageLines(line, terminal);
  return `${paint('dim', clockTime(line.time))} ${lines.join('\n')}\n`;
}

function requestLines(line: LineFields, { columns, paint }: Terminal): readonly string[] {
  const shared = columns - fixedColumns;
  const resultColumns = Math.min(longestResult, Math.floor(shared * resultShare));
  const style = styleOf(line);
  const cells = [
    paint(style, cell(line.status ?? null, 3)),
    cell(shortProtocols.get(line.protocol ?? '') ?? line.protocol ?? null, protocolColumns),
    cell(routeOf(line), shared - resultColumns),
    duration(line.firstTextMs),
    duration(line.totalMs),
    paint(style, cell(resultOf(line), resultColumns)),
    cell(line.keyName ?? line.keyId ?? '-', keyColumns),
    paint('dim', (line.requestId ?? '').slice(-idColumns)),
  ];
  const details = failuresOf(line).flatMap((text) => wrap(text, columns - indent.length));
  return [cells.join(' '), ...details.map((text) => indent + paint('dim', text))];
}

function messageLines(line: LineFields, { columns, paint }: Terminal): readonly string[] {
  const [name, style] = levels.get(line.level) ?? ['INFO', 'dim'];
  const { upstream, result, cause, reason, count, names, counts, lines: lost, trialAfterMs } = line;
  const msg = line.worker === undefined ? line.msg : `${line.msg}: worker ${line.worker}`;
  const root = line.root === undefined ? undefined : `${line.root}: ${line.hash}`;
  const trial = trialAfterMs === undefined ? undefined : `tried again after ${trialAfterMs / 1_000} s`;
  const act = [line.actor, line.action, line.keyId, line.subject].filter((word) => typeof word === 'string');
  const done = line.action === undefined ? undefined : act.join(' ');
  const shown = counts === undefined ? lost : JSON.stringify(counts);
  const words = [
    msg,
    root,
    upstream,
    trial,
    done,
    result,
    cause,
    reason,
    count,
    names?.join(', '),
    shown,
  ].filter((word) => word !== undefined && word !== null);
  const text = words.join(': ');
  const [first = '', ...more] = text
    .split('\n')
    .flatMap((part) => wrapItem(part, columns - indent.length - 6));
  return [`${paint(style, name.padEnd(5))} ${first}`, ...more.map((part) => `${indent}      ${part}`)];
}

/** Wraps a line; an item of a list, or an indented line, stays behind its own beginning. */
function wrapItem(text: string, columns: number): readonly string[] {
  const [hanging = ''] = /^ *(?:- )?/.exec(text) ?? [];
  const [first = '', ...rest] = wrap(text.slice(hanging.length), columns - hanging.length);
  return [hanging + first, ...rest.map((part) => ' '.repeat(hanging.length) + part)];
}

const levels: ReadonlyMap<number, readonly [name: string, style: Style]> = new Map([
  [20, ['DEBUG', 'dim']],
  [30, ['INFO', 'dim']],
  [40, ['WARN', 'yellow']],
  [50, ['ERROR', 'red']],
  [60, ['FATAL', 'red']],
]);

const shortProtocols: ReadonlyMap<string, string> = new Map([
  ['responses', 'resp'],
  ['passthrough', 'pass'],
]);

/** By outcome, and not by status: a stream that began with 200 may have failed. */
function styleOf({ outcome, status }: LineFields): Style {
  if (outcome === 'completed' || outcome === 'joined' || outcome === 'replayed') return 'green';
  if (outcome === 'incomplete') return 'cyan';
  if (outcome === 'refused') return Number(status) >= 500 ? 'red' : 'yellow';
  return outcome === 'client_closed' || outcome === 'cancelled' || outcome === 'drained' ? 'yellow' : 'red';
}

/** The model, and the upstream that was called last, or those that had no permit free. */
function routeOf({ model, requestedModel, upstream, refusedBy }: LineFields): string {
  const name = model ?? requestedModel ?? '-';
  const to = upstream ?? refusedBy?.join(', ');
  return to === undefined ? name : `${name} → ${to}`;
}

/** Tokens of an answer with an end; else the code that the client got, or the outcome, with the request whose answer it got. */
function resultOf({ outcome = '', code, replayOf, inputTokens, outputTokens }: LineFields): string {
  const tokens =
    inputTokens === null || inputTokens === undefined ? null : `${inputTokens}+${outputTokens ?? 0}`;
  if (outcome === 'completed') return tokens === null ? outcome : `${tokens} tokens`;
  if (outcome === 'incomplete') return tokens === null ? outcome : `${tokens}, incomplete`;
  return code ?? (replayOf === undefined ? outcome : `${outcome} ${replayOf.slice(-idColumns)}`);
}

/** A line for each attempt that failed, or for the cause of a request that failed without one. */
function failuresOf({ attempts, cause }: LineFields): readonly string[] {
  const failed = (attempts ?? []).filter(({ result }) => isFailed(result));
  const lines = failed.map((attempt) => `${attempt.upstream}: ${causeOf(attempt)}`);
  return lines.length === 0 && typeof cause === 'string' ? [firstSentence(cause)] : lines;
}

function causeOf({ cause, result, upstreamError }: AttemptFields): string {
  const words = [upstreamError?.code ?? '', upstreamError?.message ?? ''].filter((word) => word !== '');
  return firstSentence(cause ?? result) + (words.length === 0 ? '' : ` (${words.join(': ')})`);
}

/** The cause without the advice behind it, which is the same for every request; `textgate show` and the JSON log have it. */
function firstSentence(text: string): string {
  return text.split('. ', 1)[0] ?? '';
}

/** A duration in milliseconds as a cell, right-aligned: `291ms`, `1.45s`, `123s`. */
function duration(milliseconds: number | null | undefined): string {
  if (milliseconds === null || milliseconds === undefined) return '-'.padStart(timeColumns);
  const text =
    milliseconds < 1_000
      ? `${Math.round(milliseconds)}ms`
      : `${(milliseconds / 1_000).toFixed(milliseconds < 100_000 ? 2 : 0)}s`;
  return text.padStart(timeColumns);
}

/** The time of day of a log line, in the machine's time zone. */
function clockTime(time: number): string {
  return new Date(time).toTimeString().slice(0, 8);
}
