import type { Availability } from '../../domain/upstreams/circuit.ts';
import type { Target } from '../../domain/upstreams/sent-request.ts';
import type { Ports } from '../ports.ts';

/** A way to serve a request. Its place depends on the upstream alone. */
export type Way = Target;

/**
 * The upstreams that a request may be sent to: those that are available, else those that are failing, and those that asked for a
 * pause where the request can wait for its end.
 */
export function candidates(
  ways: readonly Way[],
  keyId: string,
  { health, rooms }: Pick<Ports, 'health' | 'rooms'>,
): readonly string[] {
  const graded = ways.map((way) => ({
    upstream: way.upstream,
    availability: health.availability(way, keyId),
  }));
  const best = graded.some(({ availability }) => availability === 'available') ? 'available' : 'failing';
  const fit = graded.filter(({ upstream, availability }) =>
    availability === 'cooling' ? rooms.limits(upstream) : availability === best,
  );
  // Two ways of one upstream are one queue.
  return [...new Set(fit.map(({ upstream }) => upstream))];
}

/** Where in a list the best of the ways at one upstream is: the first that is available, else one that is failing, else any. */
export function bestAt(
  ways: readonly Way[],
  upstream: string | null,
  keyId: string,
  { health }: Pick<Ports, 'health'>,
): number {
  const there = ways.filter((way) => way.upstream === upstream);
  const find = (wanted: Availability): Way | undefined =>
    there.find((way) => health.availability(way, keyId) === wanted);
  const best = find('available') ?? find('failing') ?? there[0];
  return best === undefined ? -1 : ways.indexOf(best);
}
