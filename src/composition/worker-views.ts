import type { Clock } from '../domain/ports/clock.ts';
import type { Workers } from '../domain/ports/workers.ts';
import type { ShadowView } from '../domain/shadows/shadow-book.ts';
import { inTime, workersPatienceMs } from '../operations/in-time.ts';
import type { KnownUpstream } from '../operations/list-upstreams.ts';
import { joinShadows } from '../operations/process-views.ts';
import type { ProcessViews } from '../operations/process-views.ts';

/** What this process alone knows, as JSON for the primary process. */
export function writeOwnViews(upstreams: readonly KnownUpstream[], shadows: readonly ShadowView[]): string {
  return JSON.stringify({ upstreams, shadows } satisfies ProcessViews);
}

/** What all workers know, this one among them; `null` where there is one process, and if they could not be asked. */
export async function readWorkerViews(workers: Workers | null): Promise<readonly ProcessViews[] | null> {
  // All workers are of one version, so they write what is read here.
  const text = (await workers?.readViews()) ?? null;
  return text === null ? null : (JSON.parse(text) as readonly ProcessViews[]);
}

/** The shadow routes of the config in force as all workers know them. Never rejects: those that can't be asked are left out. */
export async function listShadows(
  book: { views(): readonly ShadowView[] },
  workers: Workers | null,
  clock: Clock,
): Promise<readonly ShadowView[]> {
  const told = await inTime(readWorkerViews(workers), clock, workersPatienceMs);
  const all = (told ?? []).map(({ shadows }) => shadows);
  return joinShadows(book.views(), all);
}
