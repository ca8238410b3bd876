import { RoomsScene } from './scene.ts';
import type { Sent } from './scene.ts';
import { SimulatedUpstream } from './upstream.ts';

/** How long requests take at the upstream: `even` between 1 and 5 s, or with a long tail, of the same mean. */
export type Durations = 'even' | 'tail';

const meanMs = 3_000;
const clients = 10;
/** The mean pause of a client between two requests, in milliseconds. */
const thinkMs = 10_000;

/** The median of how far announced waits of at least a second were from those that followed, as a share of the latter. */
export async function playAnnounced(seed: number, durations: Durations, hours: number): Promise<number> {
  const scene = new RoomsScene({
    seed,
    upstreams: {
      far: new SimulatedUpstream({ slots: 1, family: 'none', tokenCount: 'at the end', clockMs: 0 }),
    },
    settings: {
      far: {
        maxInFlight: 1,
        requestsPerMinute: null,
        tokensPerMinute: null,
        learnLimits: false,
        queue: 100,
        queueWaitMs: 10_000_000,
      },
    },
    jitterMs: 0,
  });
  const { random } = scene;
  const exponential = (mean: number): number => -Math.log(1 - random()) * mean;
  const sent: Sent[] = [];
  const keepAsking = async (keyId: string): Promise<void> => {
    for (;;) {
      await scene.sleep(exponential(thinkMs));
      const totalMs = durations === 'even' ? meanMs * (1 / 3 + (4 / 3) * random()) : exponential(meanMs);
      const call = { input: 1, outputCap: 1, output: 1, headMs: totalMs / 2, totalMs };
      sent.push(await scene.send({ keyId, upstreams: ['far'], expected: { input: 1, output: 1 }, call }));
    }
  };
  for (let client = 0; client < clients; client++) void keepAsking(`key${client}`);
  await scene.time.run(() => scene.time.nowMs >= hours * 3_600_000);
  const errors = sent
    .filter(({ waitedMs }) => waitedMs >= 1_000)
    .map(({ waitedMs, announcedMs }) => Math.abs(announcedMs - waitedMs) / waitedMs)
    .toSorted((a, b) => a - b);
  return errors[errors.length >> 1] ?? Number.NaN;
}
