import { modelPrice } from '../../support/model-price.ts';
import { policyNames } from '../../../src/domain/routing/policy-names.ts';

/** The upstreams with routes, and that of shadows. */
export const routed = ['a', 'b', 'c'] as const;
export const shadowUpstream = 'shadow';
export const reportingUpstream = 'c';

/** The names of the models: each config has other routes and policies for them. */
export const modelNames = ['m0', 'm1', 'm2', 'm3'] as const;
export const groupNames = ['first', 'second'] as const;
export const tags = ['blue', 'red'] as const;
export const passedPath = '/v1/embeddings';

/** The price of all models, and that of a request that is passed on, in nano-USD. */
export const price = modelPrice({ input: 1_000_000_000, cachedInput: 1_000_000_000, output: 2_000_000_000 });
export const passedNanos = 500;

/** The limits that hold at upstreams, whichever config is in force: reloads change others. */
export const heldLimits = new Map([
  ['a', { maxInFlight: 4, requestsPerMinute: null }],
  ['b', { maxInFlight: 6, requestsPerMinute: 150 }],
]);

interface Draw {
  readonly random: () => number;
  readonly urls: ReadonlyMap<string, string>;
  readonly storage: object | null;
  readonly workers: number;
}

/** A config, whose ports are those of its gateway. */
export interface DrawnConfig {
  readonly server: object;
  readonly [setting: string]: unknown;
}

/**
 * A config with random routes, policies, second requests, shadows, groups and times. A reload may replace each of them with any
 * other one.
 */
export function drawConfig({ random, urls, storage, workers }: Draw): DrawnConfig {
  const chance = (share: number): boolean => random() < share;
  const one = <Thing>(things: readonly Thing[]): Thing =>
    things[Math.floor(random() * things.length)] as Thing;
  const queue = { queue: one([2, 20, 100]), queueWait: one(['0s', '1s', '4s']) };
  const timeouts = {
    connect: '1s',
    firstByte: one(['1500ms', '3s']),
    idle: '1500ms',
    total: one(['5s', '8s']),
    ...(chance(0.5) ? { firstText: one(['500ms', '1s']) } : {}),
  };
  const upstream = (name: string, limits: object): object => ({
    url: urls.get(name),
    onDisconnect: one(['estimate', 'drain', 'free']),
    timeouts,
    ...limits,
  });
  const limitsOf = (name: 'a' | 'b'): object => {
    const { maxInFlight = 1, requestsPerMinute = null } = heldLimits.get(name) ?? {};
    const inFlight = { maxInFlight: chance(0.5) ? maxInFlight : maxInFlight - 2, ...queue };
    return requestsPerMinute === null ? inFlight : { ...inFlight, requestsPerMinute };
  };
  const routesOf = (): object[] => {
    const from = Math.floor(random() * routed.length);
    const isWeighted = chance(0.5);
    return Array.from({ length: one([1, 2, 3, 5]) }, (_, step) => ({
      upstream: routed[(from + step) % routed.length],
      model: `x${step}`,
      cost: { input: '0.1', output: String(1 + step) },
      ...(isWeighted ? { weight: 1 + step } : {}),
      ...(chance(0.3) ? { retryWithin: one(['300ms', '2s']) } : {}),
    }));
  };
  const shadow = (): object => ({
    route: { upstream: one([shadowUpstream, ...routed]), model: 'copy' },
    share: one([0.2, 1]),
    price: { input: '1', output: '2' },
    budgetPerDay: one(['0.0001', '10']),
    maxInFlight: 3,
  });
  const modelOf = (routes: readonly object[]): object => ({
    routes,
    price: { input: '1', output: '2' },
    holdTokens: 60,
    ...(chance(0.7) ? { policy: one(policyNames) } : {}),
    ...(routes.length > 1 && chance(0.5)
      ? { hedge: { after: one(['50ms', '300ms', 'p90']), budget: one(['5%', '50%', '100%']) } }
      : {}),
    ...(chance(0.5) ? { shadow: shadow() } : {}),
  });
  return {
    server: {
      drain: one(['1s', '10s']),
      ...(workers > 1 ? { workers } : {}),
      timeouts: { unread: '2s' },
      maxAnonymousPerAddress: 1_000,
    },
    ...(storage === null ? {} : { storage }),
    limits: {
      concurrency: one([3, 20]),
      requestsPerMinute: 10_000,
      queueWait: one(['0s', '2s']),
      balanceMode: one(['soft', 'strict']),
    },
    groups: {
      first: { concurrency: one([3, 8]), budget: { amount: one(['0.02', '20']), per: 'day' } },
      second: { budget: { amount: '50', per: 'month', warnAt: ['0.001'] } },
    },
    compatibility: { chargeComment: chance(0.3), usageCost: chance(0.3) },
    upstreams: {
      a: upstream('a', limitsOf('a')),
      b: upstream('b', limitsOf('b')),
      c: upstream('c', chance(0.5) ? { learnLimits: true, ...queue } : {}),
      shadow: upstream('shadow', chance(0.5) ? { maxInFlight: 2, queue: 1 } : {}),
    },
    passthrough: [{ path: passedPath, upstream: one(['a', 'b', 'c']), price: { request: '0.0000005' } }],
    models: Object.fromEntries(modelNames.map((name) => [name, modelOf(routesOf())])),
  };
}
