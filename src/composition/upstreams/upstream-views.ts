import { isDiscovered } from '../../config/schema/schema.ts';
import type { Config } from '../../config/schema/schema.ts';
import { originOf } from '../../domain/diagnosis/call-target.ts';
import type { UpstreamAdministration } from '../../http/admin/upstreams.ts';
import { knownUpstreams, listUpstreams } from '../../operations/list-upstreams.ts';
import type { ConfiguredUpstream } from '../../operations/list-upstreams.ts';
import type { Surroundings } from './connections.ts';
import type { ProcessServices } from '../process-services.ts';
import type { Models } from './models.ts';
import { readWorkerViews } from '../worker-views.ts';

/** What operators see of the upstreams of a config, and may do with them. */
export function composeUpstreamViews(
  config: Config,
  models: Pick<Models, 'offered' | 'lastGood'>,
  surroundings: Surroundings,
  { clock, health, upstreamLimiters, running, observability, doctorRuns }: ProcessServices,
): UpstreamAdministration {
  const upstreams = describeUpstreams(config);
  const isListed = isDiscovered(config.models);
  const sources = {
    upstreams,
    health,
    upstreamLimiters,
    clock,
    running,
    offered: () => (isListed && models.lastGood() === null ? null : models.offered()),
    counts: () => observability.metrics.upstreamCounts(),
    workers: () => readWorkerViews(observability.workers),
  };
  return {
    own: () => knownUpstreams(sources),
    list: () => listUpstreams(sources),
    runDoctor: (name, run) => doctorRuns.run(name, config, surroundings, run),
  };
}

function describeUpstreams({ upstreams, models, passthrough }: Config): readonly ConfiguredUpstream[] {
  return Object.entries(upstreams).map(
    ([
      name,
      {
        url,
        dialects: [dialect = 'chat'],
        probe,
      },
    ]) => ({
      name,
      dialect,
      origin: originOf(url),
      isProbed: probe !== undefined,
      passthrough: passthrough.filter(({ upstream }) => upstream === name).map(({ path }) => path),
      isDiscovered: isDiscovered(models) && models.from === name,
    }),
  );
}
