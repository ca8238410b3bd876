import type { UpstreamCounts } from '../../domain/ports/status.ts';
import type { Instruments } from './instruments.ts';

/** What was counted of each upstream, by its name. */
export function countsOfUpstreams({
  attempts,
  violations,
}: Pick<Instruments, 'attempts' | 'violations'>): ReadonlyMap<string, UpstreamCounts> {
  const found = new Map<string, { attempts: Record<string, number>; violations: Record<string, number> }>();
  const of = (upstream = '') => {
    const counts = found.get(upstream) ?? { attempts: {}, violations: {} };
    found.set(upstream, counts);
    return counts;
  };
  for (const { labels, cell } of attempts.series.all)
    of(labels['upstream']).attempts[labels['result'] ?? ''] = cell.value;
  for (const { labels, cell } of violations.series.all)
    of(labels['upstream']).violations[labels['kind'] ?? ''] = cell.value;
  return found;
}
