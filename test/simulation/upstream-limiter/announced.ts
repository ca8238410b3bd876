import { LimitersScene } from './scene.ts';
import type { Sent } from './scene.ts';
import { SimulatedUpstream } from './upstream.ts';

/** How long requests take at the upstream: `even` between 1 and 5 s, or with a long tail, of the same mean. */
export type Durations = 'even' | 'tail';

const meanMs = 3_000;
/** The mean pause of a client between two requests, in milliseconds. */
const thinkMs = 10_000;

/** The clients of an upstream with so many permits: enough of them that most requests wait. */
export const clientsOf = { 1: 10, 4: 20 } as const;

/** Medians of how far waits of at least a second were from those that were expected, as shares of the waits. */
interface AnnouncedErrors {
  /** From what was announced. */
  readonly announced: number;
  /** From the position in the queue times the mean time between two starts: the mean where times are exponential, and known. */
  readonly known: number;
}

/** Clients before an upstream with some permits. */
export async function playAnnounced(
  seed: number,
  durations: Durations,
  permits: keyof typeof clientsOf,
  hours: number,
): Promise<AnnouncedErrors> {
  const scene = new LimitersScene({
    seed,
    upstreams: {
      far: new SimulatedUpstream({ slots: permits, family: 'none', tokenCount: 'at the end', clockMs: 0 }),
    },
    settings: {
      far: {
        maxInFlight: permits,
        requestsPerMinute: null,
        tokensPerMinute: null,
        learnLimits: false,
        queue: 100,
        queueWaitMs: 10_000_000,
        models: new Map(),
      },
    },
    jitterMs: 0,
  });
  const { random } = scene;
  const exponential = (mean: number): number => -Math.log(1 - random()) * mean;
  const sent: (Sent & { readonly knownMs: number })[] = [];
  const keepAsking = async (keyId: string): Promise<void> => {
    for (;;) {
      await scene.sleep(exponential(thinkMs));
      const totalMs = durations === 'even' ? meanMs * (1 / 3 + (4 / 3) * random()) : exponential(meanMs);
      const call = { input: 1, outputCap: 1, output: 1, headMs: totalMs / 2, totalMs };
      const requestId = `${keyId} ${sent.length}`;
      const expected = { input: 1, output: 1 };
      const sending = scene.send({ requestId, keyId, upstreams: ['far'], expected, call });
      const position = scene.limiters.waiting(requestId)?.position ?? 0;
      sent.push({ ...(await sending), knownMs: (position * meanMs) / permits });
    }
  };
  for (let client = 0; client < clientsOf[permits]; client++) void keepAsking(`key${client}`);
  await scene.time.run(() => scene.time.nowMs >= hours * 3_600_000);
  const waited = sent.filter(({ waitedMs }) => waitedMs >= 1_000);
  return {
    announced: median(waited.map(({ waitedMs, announcedMs }) => Math.abs(announcedMs - waitedMs) / waitedMs)),
    known: median(waited.map(({ waitedMs, knownMs }) => Math.abs(knownMs - waitedMs) / waitedMs)),
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
