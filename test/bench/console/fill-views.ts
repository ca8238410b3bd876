import { GroupCounts } from '../../../src/domain/history/counts.ts';
import { beginningOf, longInterval, partsOf } from '../../../src/domain/history/interval.ts';
import { writePart } from '../../../src/domain/history/part-text.ts';
import { keyEntry } from '../../../src/domain/audit/audit-line.ts';
import { nameOf } from '../../../src/domain/audit/safe-text.ts';
import { createAuditTrail } from '../../../src/storage/audit/audit-lines.ts';
import type { Engine } from '../../../src/storage/engine.ts';
import { createHistory } from '../../../src/storage/history.ts';
import { summary } from '../../support/exchange-summary.ts';

const dayMs = 86_400_000;
const models = 20;
const upstreams = 10;

/** How many requests each minute of the history has. */
const perMinute = 2_000;

/** How many minutes, and how many lines, are written at a time. */
const minutesAtOnce = 60;
const linesAtOnce = 1_000;

/** Writes the last day by minutes, with requests to every model at every upstream in each, and marks in some. */
export async function fillHistory(engine: Engine, nowMs: number, random: () => number): Promise<void> {
  const store = createHistory(engine);
  const { lengthMs } = longInterval;
  const last = beginningOf(nowMs, lengthMs);
  const starts = Array.from({ length: dayMs / lengthMs }, (_none, index) => last - dayMs + index * lengthMs);
  while (starts.length > 0) {
    const parts = starts.splice(0, minutesAtOnce).flatMap((atMs) => partsOfMinute(atMs, random));
    await store.write(
      parts.map((part) => Object.assign(part, { text: writePart(part) })),
      nowMs,
    );
  }
}

function partsOfMinute(atMs: number, random: () => number) {
  const pairs = new GroupCounts('upstream,model');
  for (let request = 0; request < perMinute; request++)
    pairs.count({
      ...summary,
      model: `model-${request % models}`,
      upstream: `upstream-${Math.floor(random() * upstreams)}`,
      outcome: random() < 0.97 ? 'completed' : 'upstream_failed',
      firstTextMs: 200 * Math.exp(2 * random() - 1),
      chargeNanos: Math.floor(random() * 1e6),
    });
  const figures = {
    node: null,
    running: Math.floor(100 * random()),
    waiting: Math.floor(10 * random()),
    eventLoopDelayMs: 20 * random(),
    memoryBytes: 2e8,
    upstreamStates: [],
    marks:
      random() < 0.3
        ? [{ atMs, kind: 'config_loaded' as const, node: null, upstream: null, model: null }]
        : [],
    marksLeftOut: 0,
  };
  return partsOf({ lengthMs: longInterval.lengthMs, atMs, process: 'filled' }, figures, pairs);
}

/** Writes so many lines of the audit over the last 20 days: keys whose limits operators changed. */
export async function fillAudit(engine: Engine, lines: number, nowMs: number): Promise<void> {
  let written = 0;
  const trail = createAuditTrail(
    engine,
    () => nowMs - 20 * dayMs + Math.floor((20 * dayMs * written) / lines),
  );
  for (; written < lines; written += linesAtOnce)
    await trail.add(
      Array.from({ length: Math.min(linesAtOnce, lines - written) }, (_none, index) =>
        keyEntry(
          { way: 'console', name: `operator ${index % 7}`, address: '192.0.2.7' },
          'key.change',
          null,
          [
            { field: 'requests_per_minute', before: String(index), after: String(index + 1) },
            { field: 'tokens_per_day', before: null, after: '1000000' },
          ],
          nameOf(`key of team ${written + index}`),
        ),
      ),
    );
}
