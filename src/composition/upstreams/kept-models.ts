import { isDeepStrictEqual } from 'node:util';
import { limiterFields } from '../../config/schema/limiter-schema.ts';
import { isDiscovered } from '../../config/schema/schema.ts';
import type { Config } from '../../config/schema/schema.ts';
import { MeasuredPrompt, namedPrompt } from '../../domain/money/hidden-prompt.ts';
import type { HiddenPrompt } from '../../domain/money/hidden-prompt.ts';
import type { OfferedModel, Route } from '../../domain/routing.ts';
import { RouteMeasure } from '../../domain/routing/route-measure.ts';
import type { ModelDiscovery } from '../../models/model-discovery.ts';

type UpstreamConfig = Config['upstreams'][string];

/** A model of the config, with its routes. */
export type ConfiguredModel = Exclude<Config['models'], { readonly from: string }>[string];

/** The config that is replaced, with its models on offer. */
export interface PreviousConfig {
  readonly config: Config;
  readonly models: {
    readonly offered: () => Iterable<OfferedModel>;
    readonly lastGood: () => ModelDiscovery['lastGood'];
  };
}

/** What the models of a config keep of those of the previous one. */
export type KeptModels = ReturnType<typeof keepModels>;

/**
 * What a process has learned of models is kept while the config is replaced, as its requests go on, but for upstreams that have
 * changed: another address or key makes it another upstream.
 */
export function keepModels(config: Config, previous: PreviousConfig | null) {
  const { models, upstreams } = config;
  const measures = keepByModel(upstreams, previous, ({ measure }) => measure);
  const prompts = keepByModel(upstreams, previous, ({ hidden }) => hidden ?? null);
  const isSameList =
    previous !== null &&
    isDiscovered(models) &&
    isDeepStrictEqual(models, previous.config.models) &&
    isSameUpstream(upstreams[models.from], previous.config.upstreams[models.from]);
  return {
    /** A discovered list whose source is unchanged; `null` if there is none. */
    lastGood: isSameList ? previous.models.lastGood() : null,
    /** The measure of a model at an upstream; routes of several models to the same one share it. `null` if nothing needs it. */
    measureOf: (model: ConfiguredModel, upstream: string, upstreamModel: string): RouteMeasure | null =>
      needsMeasures(model) ? measures(upstream, upstreamModel, () => new RouteMeasure()) : null,
    /** The hidden prompt of a model at an upstream: as long as the config says, or measured. */
    hiddenOf: (upstream: string, upstreamModel: string): HiddenPrompt =>
      prompts(upstream, upstreamModel, () => firstPrompt(upstreams[upstream])),
  };
}

/** Finds what is known of a model at an upstream: first what the previous config's routes know of it. */
function keepByModel<Known>(
  upstreams: Config['upstreams'],
  previous: PreviousConfig | null,
  knownBy: (route: Route) => Known | null,
): (upstream: string, upstreamModel: string, first: () => Known) => Known {
  const kept = new Map<string, Known>();
  for (const { routes } of previous?.models.offered() ?? [])
    for (const route of routes) {
      const { upstream, model } = route;
      const known = knownBy(route);
      if (known !== null && isSameUpstream(upstreams[upstream], previous?.config.upstreams[upstream]))
        kept.set(nameOf(upstream, model), known);
    }
  return (upstream, upstreamModel, first) => {
    const name = nameOf(upstream, upstreamModel);
    const known = kept.get(name) ?? first();
    kept.set(name, known);
    return known;
  };
}

function nameOf(upstream: string, model: string): string {
  return JSON.stringify([upstream, model]);
}

/** Whether the routes of a model are measured: without these settings, its requests do no more than they need. */
function needsMeasures({ policy, hedge }: ConfiguredModel): boolean {
  return policy !== undefined || hedge !== undefined;
}

/**
 * The most tokens that providers were seen to add to short questions, by host, where recordings of their answers show it:
 * the first figure, until a process has measured its own.
 */
const knownTokens: ReadonlyMap<string, number> = new Map([
  ['api.anthropic.com', 0],
  ['api.deepseek.com', 64],
  ['api.mistral.ai', 0],
  ['api.openai.com', 0],
  ['api.x.ai', 512],
]);

function firstPrompt(config: UpstreamConfig | undefined): HiddenPrompt {
  if (config?.hiddenPrompt !== undefined) return namedPrompt(config.hiddenPrompt);
  return new MeasuredPrompt(
    config?.url.protocol === 'demo:' ? 0 : knownTokens.get(config?.url.hostname ?? ''),
  );
}

/** The settings of an upstream without those of its limits: with other limits it is still the same upstream. */
export function withoutLimits<Settings extends object>(config: Settings): Partial<Settings> {
  const others = Object.entries(config).filter(([name]) => !(name in limiterFields));
  return Object.fromEntries(others) as Partial<Settings>;
}

function isSameUpstream(one: object = {}, other: object = {}): boolean {
  return isDeepStrictEqual(withoutLimits(one), withoutLimits(other));
}
