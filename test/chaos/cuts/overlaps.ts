import type { Observed } from './observations.ts';

/** How long a process that stood still may take to end the call of a run that it has lost, in milliseconds. */
const endsMs = 1_000;

/** A time from one moment to another, in milliseconds of the monotonic clock. */
interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** When each process stood still, and what it may take to end what it had then. */
export function pausesOf(ofAll: readonly Observed[]): ReadonlyMap<number, readonly Span[]> {
  const pauses = new Map<number, Span[]>();
  const since = new Map<number, number>();
  for (const seen of ofAll) {
    if (seen.what === 'stopped') since.set(seen.process, seen.atMs);
    const fromMs = seen.what === 'goes on' ? since.get(seen.process) : undefined;
    if (seen.what !== 'goes on' || fromMs === undefined) continue;
    const spans = pauses.get(seen.process) ?? [];
    pauses.set(seen.process, spans);
    spans.push({ fromMs, toMs: seen.atMs + endsMs });
  }
  return pauses;
}

/**
 * For how long two calls of one question ran at a time, in milliseconds. A call whose process stands still does not run, nor in
 * the second after it in which the process has to end it. Nothing else is allowed for: a process that is cut off from the
 * database has to stop before its lease is over.
 */
export function overlapMs(
  ofQuestion: readonly Observed[],
  pauses: ReadonlyMap<number, readonly Span[]>,
): number {
  const calls = callsOf(ofQuestion);
  let totalMs = 0;
  for (const [at, one] of calls.entries())
    for (const other of calls.slice(0, at)) {
      const both = {
        fromMs: Math.max(one.fromMs, other.fromMs),
        toMs: Math.min(one.toMs, other.toMs),
      };
      const still = [one, other].flatMap(({ process }) => pauses.get(process) ?? []);
      totalMs += lengthWithout(both, still);
    }
  return totalMs;
}

function callsOf(ofQuestion: readonly Observed[]): readonly (Span & { readonly process: number })[] {
  return ofQuestion.flatMap((seen) => {
    if (seen.what !== 'called') return [];
    const end = ofQuestion.find(
      (one) => (one.what === 'answered' || one.what === 'cut off') && one.call === seen.call,
    );
    return [{ process: seen.process, fromMs: seen.atMs, toMs: end?.atMs ?? Number.POSITIVE_INFINITY }];
  });
}

/** How long a span is without others. */
function lengthWithout({ fromMs, toMs }: Span, others: readonly Span[]): number {
  let lengthMs = 0;
  let atMs = fromMs;
  for (const other of others.toSorted((a, b) => a.fromMs - b.fromMs)) {
    if (atMs >= toMs) break;
    lengthMs += Math.max(0, Math.min(other.fromMs, toMs) - atMs);
    atMs = Math.max(atMs, other.toMs);
  }
  return lengthMs + Math.max(0, toMs - atMs);
}
