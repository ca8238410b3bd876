import type { Clock } from '../domain/ports/clock.ts';
import type { RunningRequest, RunningRequests } from '../domain/ports/running-requests.ts';
import type { LedgerState, RecentEndings } from '../domain/ports/status.ts';
import { inTime } from './in-time.ts';
import type { UpstreamReport } from './report-upstreams.ts';

/** The most requests in progress that a status has: those that arrived first. */
export const maxStatusRows = 1_000;

/** A request in progress, and the name of its key; `null` if it is not known. */
export interface NamedRunning extends RunningRequest {
  readonly keyName: string | null;
}

/** What a gateway does now. */
export interface Status {
  readonly atMs: number;
  readonly version: string;
  /** The name of this process; `null` where only one uses the database. */
  readonly node: string | null;
  readonly state: 'ready' | 'not ready' | 'draining';
  /** Why it can't take requests; `null` if it can. */
  readonly reason: string | null;
  /** How many requests run, and how many wait for a slot of their key or its group. */
  readonly running: number;
  readonly waiting: number;
  /** The oldest of them, waiting ones included. */
  readonly rows: readonly NamedRunning[];
  /** Whether the requests of all nodes are counted: false while those of the others can't be read. */
  readonly hasAllNodes: boolean;
  readonly recent: RecentEndings;
  /** By name; `running` are the requests that were last sent there. */
  readonly upstreams: Readonly<Record<string, UpstreamReport & { readonly running: number }>>;
  readonly ledger: LedgerState;
}

/** Where a status is read from. */
export interface StatusSources {
  readonly clock: Clock;
  readonly version: string;
  readonly node: string | null;
  /** The requests of this process, and those of all that share its database. */
  readonly here: Pick<RunningRequests, 'list'> & { readonly accepting: boolean; readonly isLeaving: boolean };
  readonly everywhere: Pick<RunningRequests, 'list'>;
  readonly namesOf: (keyIds: readonly string[]) => Promise<ReadonlyMap<string, string>>;
  readonly recent: () => RecentEndings;
  readonly ledger: () => LedgerState;
  readonly upstreamReports: () => Readonly<Record<string, UpstreamReport>>;
  whyNotReady(): Promise<string | null>;
}

/** Reads what the process already keeps. Never rejects: what can't be read in time is left out, and said to be. */
export async function readStatus(sources: StatusSources): Promise<Status> {
  const { clock, version, node, here } = sources;
  const [ready, all] = await Promise.all([
    inTime(
      sources.whyNotReady().then((reason) => ({ reason })),
      clock,
    ),
    inTime(sources.everywhere.list(), clock),
  ]);
  const requests = all ?? (await here.list());
  const rows = await withNames(requests.slice(0, maxStatusRows), sources);
  const waiting = requests.filter(({ hasSlot }) => !hasSlot).length;
  const reason = ready === null ? 'its readiness could not be found out in time' : ready.reason;
  return {
    atMs: clock.now(),
    version,
    node,
    state: !here.accepting || here.isLeaving ? 'draining' : reason === null ? 'ready' : 'not ready',
    reason,
    running: requests.length - waiting,
    waiting,
    rows,
    hasAllNodes: all !== null,
    recent: sources.recent(),
    upstreams: withRunning(sources.upstreamReports(), requests),
    ledger: sources.ledger(),
  };
}

/** Adds the names of keys: a request of this process has its own, those of others are looked up. */
async function withNames(
  requests: readonly RunningRequest[],
  { namesOf, clock }: StatusSources,
): Promise<readonly NamedRunning[]> {
  const ids = requests.flatMap(({ keyId, keyName }) =>
    keyName === undefined && keyId !== null ? [keyId] : [],
  );
  const names = ids.length === 0 ? null : await inTime(namesOf([...new Set(ids)]), clock);
  return requests.map((request) => {
    const { keyName, keyId } = request;
    return { ...request, keyName: keyName ?? names?.get(keyId ?? '') ?? null };
  });
}

function withRunning(
  reports: Readonly<Record<string, UpstreamReport>>,
  requests: readonly RunningRequest[],
): Status['upstreams'] {
  const running = countByUpstream(requests);
  return Object.fromEntries(
    Object.entries(reports).map(([name, report]) => [name, { ...report, running: running.get(name) ?? 0 }]),
  );
}

/** How many requests were last sent to each upstream. */
export function countByUpstream(requests: readonly RunningRequest[]): ReadonlyMap<string, number> {
  const running = new Map<string, number>();
  for (const { upstream } of requests)
    if (upstream !== null) running.set(upstream, (running.get(upstream) ?? 0) + 1);
  return running;
}
