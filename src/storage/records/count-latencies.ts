import type { Latencies, LatencyCounts, LatencyQuery } from '../../domain/ports/latencies.ts';
import { boundGrowth, longestMs, timeBounds } from '../../shared/time-bounds.ts';
import type { Engine, Row, Statement } from '../engine.ts';
import { joined, raw, sql } from '../statements.ts';
import { beginningConditions, placeConditions } from './record-filter.ts';
import type { RequestKey } from './request-key.ts';
import { requestKeyOf } from './request-key.ts';

/** How many records are counted in one read: some milliseconds. */
const defaultAtOnce = 10_000;

/** Counts latencies over any engine. */
export function createLatencies(engine: Pick<Engine, 'read'>, recordsAtOnce = defaultAtOnce): Latencies {
  return {
    async countLatencies(query, most) {
      const found = new Map<string, Counting>();
      let place: RequestKey | null = null;
      for (let counted = 0; counted < most; counted += recordsAtOnce) {
        const atOnce = Math.min(recordsAtOnce, most - counted);
        const next = selectNext(query, place, atOnce);
        const [durations = [], firstTexts = [], [last] = []]: readonly (readonly Row[])[] = await engine.read(
          [
            selectCounts(query, 'whole_ms', next),
            selectCounts(query, 'first_ms', next),
            selectLast(query, place, atOnce),
          ],
        );
        for (const row of durations) addRow(row, found, 'durations');
        for (const row of firstTexts) addRow(row, found, 'firstTexts');
        if (last === undefined) return { counts: [...found.values()].map(viewCounts), isWhole: true };
        place = requestKeyOf(String(last['request_id']));
      }
      return { counts: [...found.values()].map(viewCounts), isWhole: false };
    },
  };
}

/** The counts of an upstream and a model while they grow. */
interface Counting {
  readonly upstream: string;
  readonly model: string;
  requests: number;
  readonly firstTexts: Map<number, number>;
  readonly durations: Map<number, number>;
}

function addRow(row: Row, found: Map<string, Counting>, what: 'firstTexts' | 'durations'): void {
  const [upstream, model, times] = [String(row['upstream']), String(row['model']), Number(row['times'])];
  const name = JSON.stringify([upstream, model]);
  const counting = found.get(name) ?? {
    upstream,
    model,
    requests: 0,
    firstTexts: new Map<number, number>(),
    durations: new Map<number, number>(),
  };
  found.set(name, counting);
  if (what === 'durations') counting.requests += times;
  const bound = row['bound'];
  if (bound === null || bound === undefined) return;
  counting[what].set(Number(bound), (counting[what].get(Number(bound)) ?? 0) + times);
}

function viewCounts({ firstTexts, durations, ...others }: Counting): LatencyCounts {
  return { ...others, firstTexts: [...firstTexts], durations: [...durations] };
}

/** The next records of a time; those that more than one call or none answered have no times. */
function selectNext(
  { fromMs: from, toMs: to }: LatencyQuery,
  before: RequestKey | null,
  most: number,
): Statement {
  return sql`SELECT kind, attempt_ms AS whole_ms, first_byte_ms - attempt_started_ms AS first_ms FROM record_rows
    WHERE ${joined(placeConditions({ from, to }, before), ' AND ')} ORDER BY created_at DESC, tail DESC LIMIT ${most}`;
}

/** The number of the bound within which a time is, as `boundOf` has it. */
function boundIn(column: string): string {
  const logarithm = `ceil(ln(CAST(${column} AS DOUBLE PRECISION)) / ${Math.log(boundGrowth)})`;
  return `CASE WHEN ${column} <= 1 THEN 0 WHEN ${column} >= ${longestMs} THEN ${timeBounds - 1} ELSE CAST(${logarithm} AS INTEGER) END`;
}

/** Counts records by upstream, model and bound. Text is streamed in streams alone: a whole answer comes at its end. */
function selectCounts(query: LatencyQuery, column: 'whole_ms' | 'first_ms', next: Statement): Statement {
  const { upstream, model } = query;
  const wanted = [
    ...(column === 'first_ms' ? [raw(`mode = 'stream' AND protocol <> 'passthrough'`)] : []),
    ...beginningConditions({ upstream, model }),
    raw('1 = 1'),
  ];
  return sql`SELECT upstream, model, bound, sum(times) AS times FROM (
      SELECT kind, ${raw(boundIn(column))} AS bound, count(*) AS times FROM (${next}) AS passed GROUP BY kind, bound) AS counted
    JOIN record_kinds ON record_kinds.number = counted.kind
    WHERE ${joined(wanted, ' AND ')} GROUP BY upstream, model, bound`;
}

/** The last one of the next records; nothing where there are none behind them. */
function selectLast(
  { fromMs: from, toMs: to }: LatencyQuery,
  before: RequestKey | null,
  passed: number,
): Statement {
  return sql`SELECT records.request_id FROM (SELECT created_at, tail FROM record_rows
      WHERE ${joined(placeConditions({ from, to }, before), ' AND ')}
      ORDER BY created_at DESC, tail DESC LIMIT 1 OFFSET ${passed - 1}) AS last
    JOIN records ON records.created_at = last.created_at AND records.tail = last.tail`;
}
