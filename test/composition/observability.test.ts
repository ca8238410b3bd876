import { expect, test } from 'vitest';
import { createObservability } from '../../src/composition/observability.ts';
import type { Workers } from '../../src/domain/ports/workers.ts';
import { createLog } from '../../src/telemetry/log/logger.ts';
import { createFakeClock } from '../support/fake-clock.ts';

test('a scrape of one of several workers fails when the sum is missing: smaller counters would be read as a new start', async () => {
  const clock = createFakeClock();
  const workers: Workers = {
    own: 1,
    count: 2,
    peerToken: 'secret',
    exposeMetrics: async () => null,
    readStatuses: async () => null,
    readViews: async () => null,
    isAnyReady: async () => true,
  };
  const log = createLog('silent', clock);
  const observability = createObservability(null, workers, clock, log);
  await expect(observability.exposed.expose()).rejects.toThrow(
    'the primary process did not add up the metrics',
  );
  await observability.close();
});
