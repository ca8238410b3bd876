import type { Availability } from '../../domain/upstreams/circuit.ts';
import type { Target } from '../../domain/upstreams/sent-request.ts';
import type { Ports } from '../ports.ts';

/** A way to serve a request: ways to the same model at the same upstream need the same permit. */
export type Way = Target;

/**
 * Where a request may be sent: to what is available, else to what is failing, and to what pauses where the request can wait
 * for the end of that.
 */
export function candidates(
  ways: readonly Way[],
  keyId: string,
  { health, upstreamLimiters }: Pick<Ports, 'health' | 'upstreamLimiters'>,
): readonly Way[] {
  const graded = ways.map((way) => ({ way, availability: health.availability(way, keyId) }));
  const best = graded.some(({ availability }) => availability === 'available') ? 'available' : 'failing';
  const fit = graded.flatMap(({ way, availability }) =>
    (availability === 'cooling' ? upstreamLimiters.limits(way) : availability === best) ? [way] : [],
  );
  return fit.filter((way, at) => !includesWay(fit.slice(0, at), way));
}

/** Whether some ways have one to the same model at the same upstream. */
export function includesWay(ways: readonly Way[], { upstream, model }: Way): boolean {
  return ways.some((way) => way.upstream === upstream && way.model === model);
}

/**
 * Where in a list the best of the ways that a permit allows is: the first that is available, else one that is failing, else any.
 */
export function bestAt(
  ways: readonly Way[],
  permit: Way,
  keyId: string,
  { health }: Pick<Ports, 'health'>,
): number {
  const there = ways.filter((way) => includesWay([permit], way));
  const find = (wanted: Availability): Way | undefined =>
    there.find((way) => health.availability(way, keyId) === wanted);
  const best = find('available') ?? find('failing') ?? there[0];
  return best === undefined ? -1 : ways.indexOf(best);
}
