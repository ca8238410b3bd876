import type { Clock } from '../domain/ports/clock.ts';
import type { EndingCounts, LedgerState } from '../domain/ports/status.ts';
import { inTime } from './in-time.ts';
import type { UpstreamReport } from './report-upstreams.ts';

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
export interface ProcessSources {
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
export function joinStatuses(
  own: ProcessStatus,
  all: readonly ProcessStatus[],
): Pick<ProcessStatus, 'state' | 'reason' | 'upstreams' | 'ledger'> {
  const { state, reason } = all.find((one) => one.state === 'ready') ?? own;
  const upstreams = Object.entries(own.upstreams).map(([name, report]) => {
    return [name, worstReport(all.flatMap((one) => one.upstreams[name] ?? [])) ?? report];
  });
  return {
    state,
    reason,
    upstreams: Object.fromEntries(upstreams) as ProcessStatus['upstreams'],
    ledger: joinLedgers(all.map(({ ledger }) => ledger)),
  };
}

/** The worst of the reports on one upstream, which is shown, as in the metrics. */
export function worstReport(reports: readonly UpstreamReport[]): UpstreamReport | undefined {
  return reports.toSorted((one, other) => gravity[other.state] - gravity[one.state])[0];
}

/** How bad a state of an upstream is. */
const gravity = {
  unknown: 0,
  ok: 1,
  probing: 2,
  'paused by the provider': 3,
  failing: 4,
} satisfies Record<UpstreamReport['state'], number>;

/** The books are looked at by one process alone, but settlements of each may wait. */
function joinLedgers(all: readonly LedgerState[]): LedgerState {
  const roots = all.flatMap(({ root }) => root ?? []).toSorted((one, other) => other.number - one.number);
  return {
    openHolds: all.find(({ openHolds }) => openHolds !== null)?.openHolds ?? null,
    imbalanceNanos: all.find(({ imbalanceNanos }) => imbalanceNanos !== null)?.imbalanceNanos ?? null,
    settlementLagMs: Math.max(...all.map(({ settlementLagMs }) => settlementLagMs)),
    root: roots[0] ?? null,
  };
}
