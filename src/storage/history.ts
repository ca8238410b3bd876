import { promisify } from 'node:util';
import { deflate, inflate, inflateSync } from 'node:zlib';
import { longInterval, shortInterval } from '../domain/history/interval.ts';
import type { HistoryPart } from '../domain/history/interval.ts';
import { readPart } from '../domain/history/part-text.ts';
import type { HistoryRange, HistoryStore, StoredPart } from '../domain/ports/history.ts';
import type { Engine, Row, SqlValue, Statement } from './engine.ts';
import { joined, readRows, sql } from './statements.ts';

/** How many parts are read at a time, of all requests and of groups: some milliseconds of the event loop. */
const wholeAtOnce = 200;
const groupedAtOnce = 20;

const [compress, decompress] = [promisify(deflate), promisify(inflate)];

/** Keeps the history of all processes over any engine. Texts are compressed, in other threads, to a fifth. */
export function createHistory(engine: Pick<Engine, 'run' | 'read'>): HistoryStore {
  return {
    async write(parts, nowMs) {
      const rows = await Promise.all(parts.map(valuesOf));
      await engine.run([
        insertParts(rows),
        ...[shortInterval, longInterval].map(
          ({ lengthMs, keptMs }) =>
            sql`DELETE FROM history_intervals WHERE length_ms = ${lengthMs} AND at < ${nowMs - keptMs}`,
        ),
      ]);
    },
    async *read(range) {
      const limit = range.grouping === '' ? wholeAtOnce : groupedAtOnce;
      let last: Pick<HistoryPart, 'atMs' | 'process'> = { atMs: range.fromMs, process: '' };
      for (;;) {
        const rows = await readRows(engine, selectParts(range, last, limit));
        const parts = await Promise.all(rows.map((row) => partOf(row, range)));
        if (parts.length > 0) yield parts;
        if (parts.length < limit) return;
        last = parts.at(-1) ?? last;
      }
    },
  };
}

async function valuesOf({ lengthMs, atMs, process, grouping, text }: StoredPart): Promise<SqlValue[]> {
  return [lengthMs, atMs, process, grouping, (await compress(text)).toString('base64')];
}

function insertParts(rows: readonly SqlValue[][]): Statement {
  const places = rows.map((values): Statement => ({ sql: '(?, ?, ?, ?, ?)', values }));
  return sql`INSERT INTO history_intervals (length_ms, at, process, grouping, contents) VALUES ${joined(places, ', ')}
    ON CONFLICT (length_ms, at, process, grouping) DO UPDATE SET contents = excluded.contents`;
}

function selectParts(
  { grouping, lengthMs, toMs }: HistoryRange,
  { atMs, process }: Pick<HistoryPart, 'atMs' | 'process'>,
  limit: number,
): Statement {
  return sql`SELECT at, process, contents FROM history_intervals
    WHERE length_ms = ${lengthMs} AND (at, process) > (${atMs}, ${process}) AND at < ${toMs} AND grouping = ${grouping}
    ORDER BY at, process LIMIT ${limit}`;
}

async function partOf(row: Row, { grouping, lengthMs }: HistoryRange): Promise<HistoryPart> {
  const contents = Buffer.from(String(row['contents']), 'base64');
  // What is not grouped is so short that handing it to another thread takes several times as long as decompressing it.
  const text = grouping === '' ? inflateSync(contents) : await decompress(contents);
  const interval = { lengthMs, grouping, atMs: Number(row['at']), process: String(row['process']) };
  return { ...interval, ...readPart(text.toString()) };
}
