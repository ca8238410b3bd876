import { orderFor } from '../../../src/domain/routing/policies.ts';
import { RouteMeasure } from '../../../src/domain/routing/route-measure.ts';
import { localRoute } from '../../support/model-source.ts';
import { seededNumbers } from '../../support/random-numbers.ts';
import { VirtualTime } from '../virtual-time.ts';
import { exponential, logNormal } from '../distributions.ts';
import type { PolicyName } from '../../../src/domain/routing/policy-names.ts';

/**
 * Plays requests over three providers of one model: their usual times to the first text differ, and each of them has times in
 * which it is slow, or refuses every request. What a request waits ends with its first text, over all its attempts.
 */

/** `random` is `order` with the same weight at every route. */
export type FirstTextPolicy = Extract<PolicyName, 'order' | 'fastest' | 'least_in_flight'> | 'random';

export interface FirstTextPlan {
  readonly seed: number;
  readonly requests: number;
  readonly perSecond: number;
}

/** Times to the first text in milliseconds. */
export interface FirstTextFigures {
  readonly p50: number;
  readonly p99: number;
}

/** The usual medians, in milliseconds: the order of the list is the best one while nothing is wrong. */
const medians = [400, 500, 800];
const deviation = 0.5;

/** How long each provider works as usual, and then not, on average in milliseconds. */
const meanGoodMs = 240_000;
const meanBadMs = 40_000;

/** How many times as long a slow provider takes, and how long it takes one that refuses, in milliseconds. */
const slowFactor = 10;
const refusalMs = 100;

type State = 'good' | 'slow' | 'refusing';

export async function playFirstTexts(
  plan: FirstTextPlan,
  policy: FirstTextPolicy,
): Promise<FirstTextFigures> {
  const time = new VirtualTime();
  const drawn = seededNumbers(plan.seed + 1);
  const routes = medians.map((_, index) => ({
    ...localRoute,
    upstream: String(index),
    weight: policy === 'random' ? 1 : null,
    measure: new RouteMeasure(),
  }));
  const stateOf = planStates(plan);
  const waits: number[] = [];
  const ask = (random: () => number): void => {
    const beganMs = time.nowMs;
    const order = orderFor(policy === 'random' ? 'order' : policy, {
      model: { id: 'small', routes, holdTokens: 1 },
      request: { turns: [], maxOutputTokens: null, promptCacheKey: null },
      keyId: 'key_1',
      nowMs: beganMs,
      random: drawn,
      availability: () => 'available',
    });
    const left = order.map(({ upstream }) => Number(upstream));
    const attempt = (): void => {
      const provider = left.shift();
      const route = provider === undefined ? undefined : routes[provider];
      if (provider === undefined || route === undefined) return void waits.push(time.nowMs - beganMs);
      const state = stateOf(provider, time.nowMs);
      const measured = route.measure.began(time.nowMs);
      if (state === 'refusing') {
        time.after(refusalMs, () => {
          measured.ended(time.nowMs, true);
          attempt();
        });
        return;
      }
      const usualMs = logNormal(random, medians[provider] ?? 0, deviation);
      time.after(state === 'slow' ? usualMs * slowFactor : usualMs, () => {
        measured.opened(time.nowMs);
        measured.ended(time.nowMs, false);
        waits.push(time.nowMs - beganMs);
      });
    };
    attempt();
  };
  const arrivals = seededNumbers(plan.seed);
  let arrivesMs = 0;
  for (let request = 0; request < plan.requests; request++) {
    arrivesMs += exponential(arrivals, 1_000 / plan.perSecond);
    // Numbers of its own: a request finds the same times whatever was chosen before it.
    const own = seededNumbers(plan.seed * 1_000_003 + request);
    time.after(arrivesMs, () => ask(own));
  }
  await time.run(() => false);
  const sorted = waits.toSorted((one, other) => one - other);
  const at = (share: number): number => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  return { p50: at(0.5), p99: at(0.99) };
}

/** The state of each provider at any time, the same for every policy. */
function planStates({ seed, requests, perSecond }: FirstTextPlan) {
  const untilMs = (2_000 * requests) / perSecond;
  const plans = medians.map((_, provider) => {
    const random = seededNumbers(seed * 31 + provider);
    const bad: { fromMs: number; toMs: number; state: State }[] = [];
    for (let atMs = 0; atMs < untilMs;) {
      const fromMs = atMs + exponential(random, meanGoodMs);
      atMs = fromMs + exponential(random, meanBadMs);
      bad.push({ fromMs, toMs: atMs, state: random() < 0.7 ? 'slow' : 'refusing' });
    }
    return bad;
  });
  return (provider: number, nowMs: number): State =>
    plans[provider]?.find(({ fromMs, toMs }) => fromMs <= nowMs && nowMs < toMs)?.state ?? 'good';
}
