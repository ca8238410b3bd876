import { isSharedDatabase } from '../../config/database-url.ts';
import { ConfigError } from '../../config/load.ts';
import type { Config } from '../../config/schema/schema.ts';
import { needsSharedDatabase, workerCount } from '../../config/worker-settings.ts';

/** How many workers are started. Throws if they can't share the database, whose URL may be in a file. */
export function sharedWorkerCount({ server, storage }: Config): number {
  const count = workerCount(server);
  if (server.workers !== 1 && !isSharedDatabase(storage.url))
    throw new ConfigError('the config', [`server.workers: ${needsSharedDatabase}`]);
  return count;
}
