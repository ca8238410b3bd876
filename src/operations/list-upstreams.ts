import type { RunningRequests } from '../domain/ports/running-requests.ts';
import { inTime } from '../domain/time-limit.ts';
import { knownUpstreams } from './known-upstreams.ts';
import type { KnownSources, KnownUpstream } from './known-upstreams.ts';
import { joinUpstreams } from './process-views.ts';
import type { ProcessViews } from './process-views.ts';
import { countByUpstream, patienceMs, workersPatienceMs } from './read-status.ts';

/** An upstream with all that the gateway knows of it: all of its workers. */
export interface ListedUpstream extends KnownUpstream {
  /** How many requests were last sent there; `null` while those of other nodes can't be read. */
  readonly running: number | null;
}

/** Where the list of upstreams is read from. */
export interface UpstreamSources extends KnownSources {
  readonly running: Pick<RunningRequests, 'list'>;
  /** What all workers know, this one among them; `null` where there is one process, and if they could not be asked. */
  readonly workers: () => Promise<readonly ProcessViews[] | null>;
}

/** Lists all upstreams of a config, in its order. Never rejects: what can't be read in time is `null`. */
export async function listUpstreams(sources: UpstreamSources): Promise<readonly ListedUpstream[]> {
  const { running, workers, clock } = sources;
  const [requests, told] = await Promise.all([
    inTime(running.list(), patienceMs, clock),
    inTime(workers(), workersPatienceMs, clock),
  ]);
  const counts = requests === null ? null : countByUpstream(requests);
  const all = (told ?? []).map(({ upstreams }) => upstreams);
  return joinUpstreams(knownUpstreams(sources), all).map((upstream) =>
    Object.assign({ running: counts === null ? null : (counts.get(upstream.name) ?? 0) }, upstream),
  );
}
