import type { LogEvent } from '../../model/claim-log.ts';
import { leaseMs } from './disturbances.ts';
import { togetherMs } from './observations.ts';
import type { Observed } from './observations.ts';

/**
 * How long what a client has sent before it left may still be read, and its end be seen, in milliseconds in which the process
 * that it has asked does not stand still: the observers of a run and a gateway do not see things in one order.
 */
const lateMs = 3_000;

/** How long before the end of a lease its last renewal may have begun, in milliseconds, as long as nothing is disturbed. */
const renewMs = 6_000;

/** How long after a disturbance a process has renewed its lease, in milliseconds. */
const recoversMs = 3_000;

/** An event of a log at its time, in milliseconds; of those at the same time, in order. */
interface Timed {
  readonly atMs: number;
  readonly order: number;
  readonly event: LogEvent;
}

/** What was observed of all questions, as events of the logs of each. */
export interface CommonEvents {
  readonly timed: readonly Timed[];
  /** When the process with a number stood still. */
  readonly pauses: ReadonlyMap<number, readonly { readonly fromMs: number; toMs: number }[]>;
}

const changes = {
  started: 'starts',
  killed: 'is killed',
  stopped: 'stands still',
  'goes on': 'goes on',
  'loses database': 'loses the database',
  'has database': 'has the database',
} as const;

const ofAll = {
  'nodes apart': 'nodes are apart',
  'nodes together': 'nodes are together',
  'database killed': 'the database may crash',
  'database back': 'the database is back',
} as const;

/** `isOnlyProcess` says that one gateway has the database: the next process ends the lease of one that was killed at once. */
export function commonEvents(observed: readonly Observed[], isOnlyProcess: boolean): CommonEvents {
  const timed: Timed[] = [];
  const pauses = new Map<number, { readonly fromMs: number; toMs: number }[]>();
  // Since when each process could not renew its lease, and when that was over.
  const troubles = new Map<number, { readonly fromMs: number; toMs: number }>();
  const loses = (process: number, atMs: number, order: number): void => {
    const known = troubles.get(process);
    const fromMs = known !== undefined && atMs - known.toMs < recoversMs ? known.fromMs : atMs;
    troubles.set(process, { fromMs, toMs: Number.POSITIVE_INFINITY });
    timed.push({
      atMs: Math.max(atMs, fromMs + leaseMs - renewMs),
      order,
      event: { what: 'may lose its lease', process },
    });
  };
  for (const seen of observed) {
    const { at, atMs } = seen;
    if (!('process' in seen)) {
      const event = { what: ofAll[seen.what as keyof typeof ofAll] };
      timed.push({ atMs, order: at, event });
      continue;
    }
    const { process } = seen;
    const what = seen.what as keyof typeof changes;
    timed.push({ atMs, order: at, event: { what: changes[what], process } });
    if (what === 'killed' && isOnlyProcess)
      timed.push({ atMs, order: at, event: { what: 'may lose its lease', process } });
    else if (what === 'killed' || what === 'stopped' || what === 'loses database') loses(process, atMs, at);
    const trouble = troubles.get(process);
    if ((what === 'goes on' || what === 'has database') && trouble !== undefined)
      troubles.set(process, { ...trouble, toMs: atMs });
    const spans = pauses.get(process) ?? [];
    pauses.set(process, spans);
    if (what === 'stopped') spans.push({ fromMs: atMs, toMs: Number.POSITIVE_INFINITY });
    const last = spans.at(-1);
    if (what === 'goes on' && last !== undefined) last.toMs = atMs;
  }
  return { timed: dropLate(timed.toSorted(byTime)), pauses };
}

/** A lease that could be renewed before it was over is not lost. */
function dropLate(timed: readonly Timed[]): readonly Timed[] {
  const [last, changed] = [
    new Map<number, string>(),
    new Set(['stands still', 'goes on', 'is killed', 'starts']),
  ];
  return timed.filter(({ event }) => {
    if (!('process' in event)) return true;
    if (event.what === 'loses the database' || event.what === 'has the database' || changed.has(event.what))
      last.set(event.process, event.what);
    return event.what !== 'may lose its lease' || isLost(last.get(event.process));
  });
}

function isLost(change: string | undefined): boolean {
  return change === 'is killed' || change === 'stands still' || change === 'loses the database';
}

function byTime(one: Timed, other: Timed): number {
  return one.atMs - other.atMs || one.order - other.order;
}

/** The log of a question, whose claim was charged so often. */
export function logOf(
  ofQuestion: readonly Observed[],
  { timed, pauses }: CommonEvents,
  charges: number,
): readonly LogEvent[] {
  const own = ofQuestion.flatMap((seen) => eventsOf(seen, ofQuestion, pauses));
  const untilMs = ofQuestion.at(-1)?.atMs ?? 0;
  const asked = ofQuestion.flatMap((seen) =>
    seen.what === 'sent' || seen.what === 'called' ? [seen.process] : [],
  );
  const fromMs = ofQuestion[0]?.atMs ?? 0;
  const all = [...timed.filter(({ atMs }) => atMs <= untilMs), ...own.filter(({ atMs }) => atMs <= untilMs)];
  const events = all.toSorted(byTime).map(({ event, atMs }) => ({ event, atMs }));
  const concerned = processesOf(timed, asked, fromMs);
  const mayConcern = ({ event }: { event: LogEvent }): boolean =>
    !('process' in event) || concerned.has(event.process);
  return [...startLate(events.filter(mayConcern), fromMs), { what: 'is charged', times: charges }];
}

/** The processes that lived when a question was asked, or later. */
function processesOf(timed: readonly Timed[], asked: readonly number[], fromMs: number): ReadonlySet<number> {
  const found = new Set(asked);
  for (const { event } of timed) if ('process' in event && event.what === 'starts') found.add(event.process);
  for (const { event, atMs } of timed)
    if (event.what === 'is killed' && atMs < fromMs && !asked.includes(event.process))
      found.delete(event.process);
  return found;
}

/** Of what was over when a question was first asked, the log says nothing. */
function startLate(
  events: readonly { readonly event: LogEvent; readonly atMs: number }[],
  fromMs: number,
): readonly LogEvent[] {
  const before = events.filter(({ atMs }) => atMs < fromMs).map(({ event }) => event);
  const living = new Map<number, LogEvent[]>();
  let nodes: LogEvent[] = [];
  for (const event of before) {
    if ('process' in event) {
      if (event.what === 'starts') living.set(event.process, [event]);
      else if (event.what === 'goes on' || event.what === 'has the database')
        living.set(event.process, [{ what: 'starts', process: event.process }]);
      else living.get(event.process)?.push(event);
    } else if (event.what === 'nodes are apart' || event.what === 'nodes are together') nodes = [event];
  }
  return [
    ...[...living.values()].flat(),
    ...nodes,
    ...events.filter(({ atMs }) => atMs >= fromMs).map(({ event }) => event),
  ];
}

/** What was observed of a question, as events of its log. */
function eventsOf(
  seen: Observed,
  ofQuestion: readonly Observed[],
  pauses: CommonEvents['pauses'],
): readonly Timed[] {
  const { at: order, atMs } = seen;
  const at = (event: LogEvent): Timed => ({ atMs, order, event });
  if (seen.what === 'sent') {
    const asks = at({ what: 'asks', client: seen.asked, process: seen.process });
    return [asks, ...endOf(seen, ofQuestion, pauses)];
  }
  if (seen.what === 'called') return [at({ what: 'is called', call: seen.call, process: seen.process })];
  if (seen.what === 'answered' || seen.what === 'cut off')
    return [at({ what: `is ${seen.what}`, call: seen.call })];
  if (seen.what === 'served' || seen.what === 'told' || seen.what === 'refused')
    return [at({ what: `is ${seen.what}`, client: seen.asked })];
  return [];
}

/**
 * The end of a request: its connection was closed, or its client had an answer and sent another one. After the former it may be
 * seen late.
 */
function endOf(
  sent: Extract<Observed, { what: 'sent' }>,
  ofQuestion: readonly Observed[],
  pauses: CommonEvents['pauses'],
): readonly Timed[] {
  const { asked: client, asker, process } = sent;
  const left = ofQuestion.find((one) => one.what === 'left' && one.asked === client);
  const next = ofQuestion.find(
    (one) => one.what === 'sent' && one.asker === asker && one.atMs > sent.atMs + togetherMs,
  );
  const end = next !== undefined && (left === undefined || left.at > next.at) ? next : left;
  if (end === undefined) return [];
  const leaves: Timed = { atMs: end.atMs, order: end.at - 0.5, event: { what: 'leaves', client } };
  let goneMs = end.atMs;
  if (end === left) {
    goneMs += lateMs;
    for (const { fromMs, toMs } of pauses.get(process) ?? [])
      if (fromMs < goneMs && toMs > end.atMs) goneMs = toMs + lateMs;
  }
  return [leaves, { atMs: goneMs, order: end.at - 0.4, event: { what: 'is gone', client } }];
}
