import type { Check, UpstreamReport } from '../../doctor/report.ts';

/** Reports on upstreams as JSON. */
export function presentDoctor(reports: readonly UpstreamReport[]) {
  return { object: 'doctor' as const, upstreams: reports.map(presentReport) };
}

function presentReport({ name, url, status, checks }: UpstreamReport) {
  return { name, url, status, checks: checks.map(presentCheck) };
}

/** A check as JSON. Durations are rounded to whole milliseconds. */
export function presentCheck({ id, status, detail, advice, ms }: Check) {
  return { id, status, detail, advice, ms: ms === null ? null : Math.round(ms) };
}
