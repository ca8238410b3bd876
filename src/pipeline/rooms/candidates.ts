import type { Ports } from '../ports.ts';

/** A way to serve a request. Its place depends on the upstream alone. */
export interface Way {
  readonly upstream: string;
}

/**
 * The upstreams that a request may be sent to: those that are available, else those that are failing, and those that asked for a
 * pause where the request can wait for its end.
 */
export function candidates(
  ways: readonly Way[],
  { health, rooms }: Pick<Ports, 'health' | 'rooms'>,
): readonly string[] {
  const graded = ways.map(({ upstream }) => ({ upstream, availability: health.availability(upstream) }));
  const best = graded.some(({ availability }) => availability === 'available') ? 'available' : 'failing';
  const fit = graded.filter(({ upstream, availability }) =>
    availability === 'cooling' ? rooms.limits(upstream) : availability === best,
  );
  // Two ways of one upstream are one queue.
  return [...new Set(fit.map(({ upstream }) => upstream))];
}
