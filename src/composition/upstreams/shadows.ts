import { isDiscovered } from '../../config/schema/schema.ts';
import type { Config } from '../../config/schema/schema.ts';
import { free } from '../../domain/money/pricing.ts';
import type { ShadowRoute } from '../../domain/shadows/shadow-route.ts';
import { createShadows } from '../../pipeline/shadows/shadows.ts';
import type { Ports } from '../../pipeline/ports.ts';
import type { ProcessServices } from '../process-services.ts';
import { sourceOf } from './upstreams.ts';
import type { SourceDetails } from './upstreams.ts';

/** Adds the shadows of a config to its ports; from now on those of its routes are counted. */
export function withShadows(
  ports: Omit<Ports, 'shadows'>,
  config: Config,
  details: SourceDetails,
  { shadowBook: book }: Pick<ProcessServices, 'shadowBook'>,
): Ports {
  const routes = shadowRoutesOf(config, details);
  book.configure(routes);
  return { ...ports, shadows: routes.length === 0 ? null : createShadows(routes, { ...ports, book }) };
}

/** A shadow route has no place among the routes that requests are tried at, and is not measured with them. */
const placeless = { weight: null, cost: null, measure: null } as const;

function shadowRoutesOf({ models, upstreams }: Config, details: SourceDetails): readonly ShadowRoute[] {
  if (isDiscovered(models)) return [];
  return Object.entries(models).flatMap(([model, { shadow, holdTokens }]) => {
    if (shadow === undefined) return [];
    const { route, share, price = free, budgetPerDay = null, maxInFlight } = shadow;
    return [
      {
        model,
        route: { ...sourceOf(route.upstream, upstreams, details), ...route, ...placeless },
        share,
        price,
        budgetNanos: budgetPerDay,
        maxInFlight,
        holdTokens,
      },
    ];
  });
}
