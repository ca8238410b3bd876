import type { Clock } from '../domain/ports/clock.ts';
import type { RunningRequest, RunningRequests } from '../domain/ports/running-requests.ts';
import type { EndingCounts, RecentEndings, LedgerState } from '../domain/ports/status.ts';
import { inTime } from '../domain/time-limit.ts';
import { byFields, firstKnown, greatest, ifKnown, greatestBy } from './join-fields.ts';
import type { UpstreamReport } from './report-upstreams.ts';

/** The most requests in progress that a status has: those that arrived first. */
export const maxStatusRows = 1_000;

/** How long the database and the readiness are waited for, in milliseconds: operators ask most when they hang. */
export const patienceMs = 2_000;

/**
 * How long the other workers are waited for, in milliseconds: longer than the primary process waits for each of them, as one
 * that hangs would otherwise leave the others out, too.
 */
export const workersPatienceMs = 2 * patienceMs;

/** A request in progress, and the name of its key; `null` if it is not known. */
export interface NamedRunning extends RunningRequest {
  readonly keyName: string | null;
}

/** What a gateway does now: all of its workers. */
export interface Status extends Pick<ProcessStatus, 'state' | 'reason' | 'ledger'> {
  readonly atMs: number;
  readonly version: string;
  /** The name of this process; `null` where only one uses the database. */
  readonly node: string | null;
  /** How many requests run, and how many wait: for a slot of their key or its group, or for an upstream with limits. */
  readonly running: number;
  readonly waiting: number;
  /** The oldest of them, waiting ones included. */
  readonly rows: readonly NamedRunning[];
  /** Whether the requests of all nodes are counted: false while those of the others can't be read. */
  readonly hasAllNodes: boolean;
  readonly recent: RecentEndings;
  /** By name, with how many requests were last sent to each, and how many of this process wait for it. */
  readonly upstreams: Readonly<
    Record<string, UpstreamReport & { readonly running: number; readonly waiting: number }>
  >;
}

/** Where a status is read from. */
export interface StatusSources extends ProcessSources {
  readonly version: string;
  readonly node: string | null;
  /** The requests of this process, and those of all that share its database. */
  readonly here: Pick<RunningRequests, 'list'> & ProcessSources['here'];
  readonly everywhere: Pick<RunningRequests, 'list'>;
  readonly namesOf: (keyIds: readonly string[]) => Promise<ReadonlyMap<string, string>>;
  /** What all workers say, this one among them; `null` where there is one process, and if they could not be asked. */
  readonly workers: () => Promise<readonly ProcessStatus[] | null>;
  readonly addUp: (all: readonly EndingCounts[]) => RecentEndings;
}

/** Reads what the processes already keep. Never rejects: what can't be read in time is left out, and said to be. */
export async function readStatus(sources: StatusSources): Promise<Status> {
  const { clock, version, node, here } = sources;
  const [own, told, all] = await Promise.all([
    readProcessStatus(sources),
    inTime(sources.workers(), workersPatienceMs, clock),
    inTime(sources.everywhere.list(), patienceMs, clock),
  ]);
  const processes = told === null || told.length === 0 ? [own] : told;
  const requests = all ?? (await here.list());
  const rows = await withNames(requests.slice(0, maxStatusRows), sources);
  const waiting = requests.filter(isWaiting).length;
  const { upstreams, ...joined } = joinStatuses(own, processes);
  return {
    atMs: clock.now(),
    version,
    node,
    ...joined,
    running: requests.length - waiting,
    waiting,
    rows,
    hasAllNodes: all !== null,
    recent: sources.addUp(processes.map(({ recent }) => recent)),
    upstreams: withUse(upstreams, requests),
  };
}

/** Whether a request waits for a slot or an upstream. One that gets the answer of another request needs neither. */
function isWaiting({ hasSlot, joined, permitWait }: RunningRequest): boolean {
  return (!hasSlot && joined === null) || permitWait !== null;
}

/** Adds the names of keys: a request of this process has its own, those of others are looked up. */
async function withNames(
  requests: readonly RunningRequest[],
  { namesOf, clock }: StatusSources,
): Promise<readonly NamedRunning[]> {
  const ids = requests.flatMap(({ keyId, keyName }) =>
    keyName === undefined && keyId !== null ? [keyId] : [],
  );
  const names = ids.length === 0 ? null : await inTime(namesOf([...new Set(ids)]), patienceMs, clock);
  return requests.map((request) => {
    const { keyName, keyId } = request;
    return { ...request, keyName: keyName ?? names?.get(keyId ?? '') ?? null };
  });
}

function withUse(
  reports: Readonly<Record<string, UpstreamReport>>,
  requests: readonly RunningRequest[],
): Status['upstreams'] {
  const running = countByUpstream(requests);
  const waiting = new Map<string, number>();
  for (const { permitWait } of requests)
    for (const upstream of permitWait?.upstreams ?? [])
      waiting.set(upstream, (waiting.get(upstream) ?? 0) + 1);
  return Object.fromEntries(
    Object.entries(reports).map(([name, report]) => {
      const use = { running: running.get(name) ?? 0, waiting: waiting.get(name) ?? 0 };
      return [name, { ...report, ...use }];
    }),
  );
}

/** How many requests were last sent to each upstream. */
export function countByUpstream(requests: readonly RunningRequest[]): ReadonlyMap<string, number> {
  const running = new Map<string, number>();
  for (const { upstream } of requests)
    if (upstream !== null) running.set(upstream, (running.get(upstream) ?? 0) + 1);
  return running;
}

/** What a process alone knows of the status of its gateway. */
export interface ProcessStatus {
  readonly state: 'ready' | 'not ready' | 'draining';
  /** Why it can't take requests; `null` if it can. */
  readonly reason: string | null;
  readonly recent: EndingCounts;
  readonly upstreams: Readonly<Record<string, UpstreamReport>>;
  readonly ledger: LedgerState;
}

/** Where a process reads its own status. */
interface ProcessSources {
  readonly clock: Clock;
  readonly here: { readonly accepting: boolean; readonly isLeaving: boolean };
  readonly recent: () => EndingCounts;
  readonly ledger: () => LedgerState;
  readonly upstreamReports: () => Readonly<Record<string, UpstreamReport>>;
  whyNotReady(): Promise<string | null>;
}

/** Reads what this process alone knows. Never rejects. */
export async function readProcessStatus(sources: ProcessSources): Promise<ProcessStatus> {
  const { here, clock } = sources;
  const ready = await inTime(
    sources.whyNotReady().then((reason) => ({ reason })),
    patienceMs,
    clock,
  );
  const reason = ready === null ? 'its readiness could not be found out in time' : ready.reason;
  return {
    state: !here.accepting || here.isLeaving ? 'draining' : reason === null ? 'ready' : 'not ready',
    reason,
    recent: sources.recent(),
    upstreams: sources.upstreamReports(),
    ledger: sources.ledger(),
  };
}

/** What the workers of a gateway know together: `own` is this one, and `all` are those that answered, at least one. */
function joinStatuses(
  own: ProcessStatus,
  all: readonly ProcessStatus[],
): Pick<ProcessStatus, 'state' | 'reason' | 'upstreams' | 'ledger'> {
  const { state, reason } = all.find((one) => one.state === 'ready') ?? own;
  const upstreams = Object.entries(own.upstreams).map(([name, report]) => {
    const reports = all.flatMap((one) => one.upstreams[name] ?? []);
    return [name, reports.length === 0 ? report : worstReport(reports, report)];
  });
  return {
    state,
    reason,
    upstreams: Object.fromEntries(upstreams) as ProcessStatus['upstreams'],
    ledger: joinLedgers(
      all.map(({ ledger }) => ledger),
      own.ledger,
    ),
  };
}

/** How bad a state of an upstream is. */
const gravity = {
  unknown: 0,
  ok: 1,
  probing: 2,
  'paused by the provider': 3,
  failing: 4,
} satisfies Record<UpstreamReport['state'], number>;

/** The worst of the reports on one upstream, which is shown, as in the metrics. */
export const worstReport = greatestBy(({ state }: UpstreamReport) => gravity[state]);

/** The books are looked at by one process alone, but settlements of each may wait. */
const joinLedgers = byFields<LedgerState>({
  openHolds: firstKnown,
  imbalanceNanos: firstKnown,
  settlementLagMs: greatest,
  root: ifKnown(greatestBy(({ number }) => number)),
});
