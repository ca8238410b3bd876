import { readProxyEnvironment } from '../../config/proxy-environment.ts';
import type { Config } from '../../config/schema/schema.ts';
import { systemClock } from '../clock.ts';
import { keepModels } from './kept-models.ts';
import { composeModels } from './models.ts';
import { followUpstreamFiles, readUpstreamFiles, unlogged } from './upstream-files.ts';
import { composeUpstreams } from './upstreams.ts';
import type { NameSettings } from './upstreams.ts';

/** The models that an upstream lists, newest first, or why there is no list, for the operator. */
export type ListedModels =
  | { readonly kind: 'listed'; readonly names: readonly string[] }
  | { readonly kind: 'failed'; readonly problem: string };

/** Fetches the list of a config whose models are those that an upstream lists, as its gateway would. */
export async function listModels(config: Config, nameSettings: NameSettings): Promise<ListedModels> {
  const findProxy = readProxyEnvironment();
  const files = followUpstreamFiles(readUpstreamFiles(config), systemClock, unlogged);
  const upstreams = composeUpstreams(config, { files, findProxy }, systemClock);
  const health = { contacted() {} };
  const ports = { upstreams, clock: systemClock, health, onChange() {}, onFound() {} };
  const details = { files, findProxy, nameSettings };
  const models = composeModels(config, ports, details, keepModels(config, null));
  try {
    await models.fetchList();
    const offered = [...models.offered()];
    if (offered.length === 0)
      return { kind: 'failed', problem: models.problem() ?? 'the list of models is empty' };
    const newestFirst = offered.toSorted((one, other) => other.createdAtSeconds - one.createdAtSeconds);
    return { kind: 'listed', names: newestFirst.map(({ id }) => id) };
  } finally {
    files.stop();
    await upstreams.close();
  }
}
