import type { History, HistoryFigures, HistoryPoint } from '../../operations/read-history.ts';
import { formatUsd } from '../../shared/money.ts';
import { isoTime } from './iso-time.ts';

/** Presents the history of some time. */
export function presentHistory({ fromMs, toMs, by, stepMs, points, marks, marksLeftOut }: History) {
  return {
    object: 'history' as const,
    from: isoTime(fromMs),
    to: isoTime(toMs),
    step_seconds: stepMs / 1_000,
    by: by === '' ? [] : by.split(','),
    points: points.map((point) => presentPoint(point, by !== '')),
    marks: marks.map(({ atMs, kind, ...named }) => ({ at: isoTime(atMs), kind, ...named })),
    marks_left_out: marksLeftOut,
  };
}

function presentPoint(point: HistoryPoint, isGrouped: boolean) {
  return {
    at: isoTime(point.atMs),
    processes: point.processes,
    running: point.running,
    waiting: point.waiting,
    event_loop_delay_ms: point.eventLoopDelayMs,
    memory_bytes: point.memoryBytes,
    upstream_states: Object.fromEntries(point.upstreamStates),
    ...presentFigures(point),
    ...(isGrouped ? { groups: point.groups.map(presentGroup) } : {}),
  };
}

function presentGroup({ upstream, model, isOther, figures }: HistoryPoint['groups'][number]) {
  return { upstream, model, other: isOther, ...presentFigures(figures) };
}

function presentFigures({ requests, refusals, firstTextMs, outputTokens, chargeNanos }: HistoryFigures) {
  return {
    requests,
    refusals,
    first_text_ms: firstTextMs,
    output_tokens: outputTokens,
    charge: formatUsd(chargeNanos),
  };
}
