import type { LimiterSettings } from '../../../src/domain/ports/upstream-limiters.ts';
import { LimitersScene } from './scene.ts';
import type { Sent } from './scene.ts';
import { SimulatedUpstream, mostWithin } from './upstream.ts';

const minuteMs = 60_000;

/** The limits of three upstreams, which only count. */
const limits = {
  slots: { maxInFlight: 6, requestsPerMinute: null, tokensPerMinute: null },
  starts: { maxInFlight: 20, requestsPerMinute: 120, tokensPerMinute: null },
  tokens: { maxInFlight: null, requestsPerMinute: 300, tokensPerMinute: 20_000 },
} as const;

export interface ConfiguredResult {
  readonly requests: number;
  readonly answered: number;
  /** What was exceeded, by the upstreams' own count of any 60 seconds. */
  readonly exceeded: readonly string[];
  /** The most that each upstream counted, of its limit. */
  readonly most: Readonly<Record<string, string>>;
}

/** Random requests of ten keys for three upstreams with configured limits. */
export async function playConfigured(seed: number, requests: number): Promise<ConfiguredResult> {
  const upstreams = Object.fromEntries(
    Object.keys(limits).map((name) => [
      name,
      new SimulatedUpstream({ family: 'none', tokenCount: 'at the end', clockMs: 0 }),
    ]),
  );
  const settings = Object.fromEntries(
    Object.entries(limits).map(([name, own]): [string, LimiterSettings] => [
      name,
      { ...own, learnLimits: false, queue: 200, queueWaitMs: 120_000, models: new Map() },
    ]),
  );
  // Up to the jitter for which the gateway counts starts longer.
  const scene = new LimitersScene({ seed, upstreams, settings, jitterMs: 1_000 });
  const names = Object.keys(limits);
  const sent: Sent[] = [];
  const { random } = scene;
  let left = requests;
  const come = async (): Promise<void> => {
    const input = 1 + Math.floor(random() * 200);
    const outputCap = 1 + Math.floor(random() * 400);
    const output = Math.ceil(random() * outputCap);
    const headMs = 50 + 500 * random();
    const at = Math.floor(random() * names.length);
    const ways = [...names.slice(at), ...names.slice(0, at)].slice(0, 1 + Math.floor(random() * 3));
    sent.push(
      await scene.send({
        keyId: `key${Math.floor(random() * 10)}`,
        weight: 1 + Math.floor(random() * 3),
        upstreams: ways,
        expected: { input, output: outputCap },
        call: { input, output, outputCap, headMs, totalMs: headMs + output * 10 * random() },
      }),
    );
  };
  // Bursts and lulls, with a mean of three a second, which is more than all of them take.
  const next = (): void => {
    for (let burst = 1 + Math.floor(random() * 20); burst > 0 && left > 0; burst--, left--) void come();
    if (left > 0) scene.time.after(random() * 6_500, next);
  };
  next();
  await scene.time.run(() => sent.length === requests);
  const exceeded: string[] = [];
  const most: Record<string, string> = {};
  for (const [name, { maxInFlight, requestsPerMinute, tokensPerMinute }] of Object.entries(limits)) {
    const upstream = upstreams[name] as SimulatedUpstream;
    const counted = [
      ['in flight', upstream.mostInFlight, maxInFlight],
      ['starts', mostWithin(upstream.starts, minuteMs), requestsPerMinute],
      ['tokens by arrival', mostWithin(upstream.atArrival, minuteMs), tokensPerMinute],
      ['tokens by end', mostWithin(upstream.atEnd, minuteMs), tokensPerMinute],
    ] as const;
    for (const [what, found, limit] of counted) {
      if (limit === null) continue;
      most[`${name}, ${what}`] = `${found} of ${limit}`;
      if (found > limit) exceeded.push(`${name}: ${found} ${what} of ${limit}`);
    }
  }
  return { requests, answered: sent.filter(({ result }) => result === 'answered').length, exceeded, most };
}
