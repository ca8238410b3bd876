import type { Config } from '../../config/schema/schema.ts';
import type { OfferedModel } from '../../domain/routing.ts';
import { RouteMeasure } from '../../domain/routing/route-measure.ts';
import { isSameUpstream } from './same-upstream.ts';

/** A model of the config, with its routes. */
export type ConfiguredModel = Exclude<Config['models'], { readonly from: string }>[string];

/** Finds the measure of a model at an upstream; routes of several models to the same one share it. `null` if nothing needs it. */
export type MeasureOf = (
  model: ConfiguredModel,
  upstream: string,
  upstreamModel: string,
) => RouteMeasure | null;

/** The config that is replaced, with its models on offer. */
interface Previous {
  readonly config: Config;
  readonly models: { readonly offered: () => Iterable<OfferedModel> };
}

/**
 * Makes the measures of a config. Those of the previous one are kept, as its requests go on, but for upstreams that have
 * changed: another address or key makes it another upstream.
 */
export function composeMeasures({ upstreams }: Config, previous: Previous | null): MeasureOf {
  const measures = new Map<string, RouteMeasure>();
  for (const { routes } of previous?.models.offered() ?? [])
    for (const { upstream, model, measure } of routes)
      if (measure !== null && isSameUpstream(upstreams[upstream], previous?.config.upstreams[upstream]))
        measures.set(nameOf(upstream, model), measure);
  return (model, upstream, upstreamModel) => {
    if (!needsMeasures(model)) return null;
    const name = nameOf(upstream, upstreamModel);
    const measure = measures.get(name) ?? new RouteMeasure();
    measures.set(name, measure);
    return measure;
  };
}

/** Whether the routes of a model are measured: without these settings, its requests do no more than they need. */
function needsMeasures({ policy, hedge }: ConfiguredModel): boolean {
  return policy !== undefined || hedge !== undefined;
}

function nameOf(upstream: string, model: string): string {
  return JSON.stringify([upstream, model]);
}
