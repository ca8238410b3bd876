import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Availability } from '../../../src/domain/upstreams/circuit.ts';
import { orderFor } from '../../../src/domain/routing/policies.ts';
import type { OrderTerms } from '../../../src/domain/routing/policies.ts';
import { RouteMeasure } from '../../../src/domain/routing/route-measure.ts';
import type { Route } from '../../../src/domain/routing.ts';
import type { TextTurn } from '../../../src/protocol/text.ts';
import { localRoute } from '../../support/model-source.ts';
import { propertyRun } from '../../support/property-run.ts';
import { randomNumbers } from '../../support/random-numbers.ts';
import { policyNames } from '../../../src/domain/routing/policy-names.ts';
import type { PolicyName } from '../../../src/domain/routing/policy-names.ts';

type MeasuredRoute = Route & { readonly measure: RouteMeasure };

const measured = (upstream: string, settings: Partial<Route> = {}): MeasuredRoute => ({
  ...localRoute,
  ...settings,
  upstream,
  measure: new RouteMeasure(),
});

/** A route with a known time to the first text. */
function timed(upstream: string, timeMs: number): MeasuredRoute {
  const route = measured(upstream);
  route.measure.began(-timeMs).opened(0);
  return route;
}

const { random } = randomNumbers();
const chat: readonly TextTurn[] = [
  { role: 'system', text: 'be brief' },
  { role: 'user', text: 'hello' },
];

function namesOf(policy: PolicyName, routes: readonly Route[], terms: Partial<OrderTerms> = {}): string {
  const ordered = orderFor(policy, {
    model: { id: 'small', routes, holdTokens: 1_000 },
    request: { turns: chat, maxOutputTokens: null, promptCacheKey: null },
    keyId: 'key_1',
    nowMs: 1,
    random,
    availability: () => 'available',
    ...terms,
  });
  return ordered.map(({ upstream }) => upstream).join('');
}

/** How often each route comes first. */
function firsts(count: number, draw: () => string): Readonly<Record<string, number>> {
  const found: Record<string, number> = {};
  for (let time = 0; time < count; time++) {
    const first = draw().charAt(0);
    found[first] = (found[first] ?? 0) + 1;
  }
  return found;
}

test('every policy has each route once, whatever is known of it', () => {
  const state = fc.record({
    weight: fc.option(fc.integer({ min: 1, max: 9 })),
    running: fc.nat(4),
    timeMs: fc.option(fc.nat(5_000)),
    hasFailed: fc.boolean(),
    availability: fc.constantFrom<Availability>('available', 'failing', 'cooling'),
  });
  const property = fc.property(
    fc.constantFrom(...policyNames),
    fc.array(state, { minLength: 1, maxLength: 6 }),
    fc.nat(100_000),
    (policy, states, nowMs) => {
      const routes = states.map(({ weight, running, timeMs, hasFailed }, index) => {
        const route = measured(String(index), { weight, cost: { input: index, output: 1 } });
        if (timeMs !== null) route.measure.began(0).opened(timeMs);
        for (let time = 0; time < running; time++) route.measure.began(0);
        if (hasFailed) route.measure.began(0).ended(0, true);
        return route;
      });
      const availability = ({ upstream }: { readonly upstream: string }): Availability =>
        states[Number(upstream)]?.availability ?? 'available';
      const names = namesOf(policy, routes, { nowMs, availability });
      expect(names.split('').toSorted().join('')).toBe(states.map((_, index) => index).join(''));
    },
  );
  fc.assert(property, { ...propertyRun(), numRuns: 500 });
});

describe('least_in_flight', () => {
  test('puts the route with the fewest requests in progress first', () => {
    const routes = [measured('a'), measured('b'), measured('c')];
    routes[0]?.measure.began(0);
    routes[0]?.measure.began(0);
    routes[2]?.measure.began(0);
    expect(namesOf('least_in_flight', routes)).toBe('bca');
  });

  test('shares by weight, and draws among equals', () => {
    const routes = [measured('a', { weight: 3 }), measured('b', { weight: 1 })];
    for (let time = 0; time < 400; time++) {
      const first = namesOf('least_in_flight', routes).charAt(0);
      routes.find(({ upstream }) => upstream === first)?.measure.began(0);
    }
    expect(routes.map(({ measure }) => measure.inFlight)).toEqual([300, 100]);
    const equals = [measured('c'), measured('d')];
    expect(Object.keys(firsts(100, () => namesOf('least_in_flight', equals))).toSorted()).toEqual(['c', 'd']);
  });

  test('puts a route that failed just now last: it would have the fewest of all', () => {
    const routes = [measured('a'), measured('b')];
    routes[0]?.measure.began(0).ended(1, true);
    routes[1]?.measure.began(0);
    expect(namesOf('least_in_flight', routes)).toBe('ba');
    expect(namesOf('least_in_flight', routes, { nowMs: 10_001 })).toBe('ab');
  });
});

describe('fastest', () => {
  test('puts the faster one of two first, and the others by their times', () => {
    expect(namesOf('fastest', [timed('a', 900), timed('b', 100)])).toBe('ba');
    expect(namesOf('fastest', [timed('a', 900), timed('b', 100), timed('c', 500)])).toBe('bca');
  });

  test('draws two of those near the best, so never the slowest of three', () => {
    const routes = [timed('a', 600), timed('b', 500), timed('c', 550), timed('d', 760)];
    const found = firsts(600, () => namesOf('fastest', routes));
    expect(Object.keys(found).toSorted()).toEqual(['b', 'c']);
    expect(found['b']).toBeGreaterThan(340);
  });

  test('tries each route of which nothing is known, one request at a time', () => {
    const routes = [timed('a', 100), measured('b'), measured('c')];
    const first = namesOf('fastest', routes).charAt(0);
    expect(['b', 'c']).toContain(first);
    routes.find(({ upstream }) => upstream === first)?.measure.began(0);
    const second = namesOf('fastest', routes).charAt(0);
    expect(second).toBe(first === 'b' ? 'c' : 'b');
    routes.find(({ upstream }) => upstream === second)?.measure.began(0);
    expect(namesOf('fastest', routes)).toMatch(/a/);
    const counted = firsts(100, () => namesOf('fastest', routes));
    expect(counted['a']).toBeGreaterThan(40);
  });

  test('puts failing routes last, and all in the order of their times if all fail', () => {
    const routes = [timed('a', 100), timed('b', 500)];
    routes[0]?.measure.began(0).ended(1, true);
    expect(namesOf('fastest', routes)).toBe('ba');
    routes[1]?.measure.began(0).ended(1, true);
    expect(namesOf('fastest', routes)).toBe('ab');
  });

  test('tries a route whose times are old for one request in twenty, and only while no trial runs', () => {
    const routes = [timed('a', 100), timed('b', 500)];
    routes[0]?.measure.began(29_000).opened(29_100);
    const draw = (): string => namesOf('fastest', routes, { nowMs: 30_000 });
    const found = firsts(2_000, draw);
    expect(found['b']).toBeGreaterThan(50);
    expect(found['b']).toBeLessThan(160);
    routes[1]?.measure.began(30_000);
    expect(firsts(500, draw)).toEqual({ a: 500 });
  });

  test('leaves a route that hangs before its first attempt there fails', () => {
    const routes = [timed('a', 100), timed('b', 500)];
    routes[0]?.measure.began(0);
    expect(namesOf('fastest', routes, { nowMs: 400 })).toBe('ab');
    expect(namesOf('fastest', routes, { nowMs: 600 })).toBe('ba');
  });
});

test('cheapest goes by what this request is expected to cost: its input, and its cap or what a hold covers', () => {
  const routes = [
    measured('a', { cost: { input: 100, output: 900 } }),
    measured('b', { cost: { input: 300, output: 400 } }),
  ];
  const long = [{ role: 'user', text: 'x'.repeat(40_000) }] as const;
  expect(namesOf('cheapest', routes)).toBe('ba');
  expect(
    namesOf('cheapest', routes, { request: { turns: long, maxOutputTokens: 100, promptCacheKey: null } }),
  ).toBe('ab');
  expect(
    namesOf('cheapest', routes, { request: { turns: long, maxOutputTokens: 100_000, promptCacheKey: null } }),
  ).toBe('ba');
});

describe('affinity', () => {
  const replicas = ['a', 'b', 'c', 'd'].map((name) => measured(name));
  const conversation = (number: number): readonly TextTurn[] => [
    { role: 'system', text: 'be brief' },
    { role: 'user', text: `question ${number}` },
  ];
  const orderOf = (turns: readonly TextTurn[], routes: readonly Route[] = replicas, keyId = 'key_1') =>
    namesOf('affinity', routes, { request: { turns, maxOutputTokens: null, promptCacheKey: null }, keyId });
  const numbers = Array.from({ length: 400 }, (_, number) => number);

  test('keeps the order of a conversation at all its turns', () => {
    for (const number of numbers.slice(0, 50)) {
      const begin = conversation(number);
      const later = [...begin, { role: 'assistant', text: 'yes' }, { role: 'user', text: 'why?' }] as const;
      expect(orderOf(later)).toBe(orderOf(begin));
    }
  });

  test('keeps the order of all requests of a key with the same prompt_cache_key, whatever they ask', () => {
    const orderBy = (promptCacheKey: string | null, number: number, keyId = 'key_1'): string =>
      namesOf('affinity', replicas, {
        request: { turns: conversation(number), maxOutputTokens: null, promptCacheKey },
        keyId,
      });
    for (const number of numbers.slice(0, 20)) {
      expect(orderBy('manual', number)).toBe(orderBy('manual', 0));
      expect(orderBy('', number)).toBe(orderBy(null, number));
      expect(orderBy('x'.repeat(1_000_000), number)).toBe(orderBy('x'.repeat(1_000_000), 0));
    }
    const ordersBy = (draw: (number: number) => string): Set<string> => new Set(numbers.map(draw));
    expect(ordersBy((number) => orderBy(`manual ${number}`, 0)).size).toBe(24);
    expect(ordersBy((number) => orderBy('manual', 0, `key_${number}`)).size).toBe(24);
  });

  test('is the same in every process: workers, nodes and later versions find the same caches', () => {
    expect(numbers.slice(0, 6).map((number) => orderOf(conversation(number)))).toEqual([
      'cabd',
      'dbca',
      'cabd',
      'cbad',
      'adbc',
      'adcb',
    ]);
  });

  test('moves only the conversations of a route that is gone, each to the next one of its order', () => {
    const left = replicas.filter(({ upstream }) => upstream !== 'b');
    for (const number of numbers.slice(0, 100))
      expect(orderOf(conversation(number), left)).toBe(orderOf(conversation(number)).replace('b', ''));
  });

  test('shares conversations equally, or by weight', () => {
    const equal = numbers.map((number) => orderOf(conversation(number)).charAt(0));
    for (const name of 'abcd') expect(equal.filter((first) => first === name).length).toBeGreaterThan(65);
    const weighted = [measured('a', { weight: 3 }), measured('b', { weight: 1 })];
    const heavy = numbers.filter((number) => orderOf(conversation(number), weighted).startsWith('a'));
    expect(heavy.length).toBeGreaterThan(260);
    expect(heavy.length).toBeLessThan(340);
  });

  test('places the same words of another key independently', () => {
    const same = numbers.filter(
      (number) =>
        orderOf(conversation(number)).charAt(0) ===
        orderOf(conversation(number), replicas, 'key_2').charAt(0),
    );
    expect(same.length).toBeGreaterThan(60);
    expect(same.length).toBeLessThan(140);
  });

  test('tells conversations apart by their first question behind long instructions', () => {
    const instructions = 'x'.repeat(50_000);
    const found = numbers.map((number) =>
      orderOf([
        { role: 'system', text: instructions },
        { role: 'user', text: String(number) },
      ]).charAt(0),
    );
    expect(new Set(found).size).toBe(4);
  });

  test('never has more than 1.25 times the mean in progress at a route, in whole requests', () => {
    const step = fc.record({ number: fc.nat(2), ends: fc.boolean(), which: fc.nat(1_000) });
    const property = fc.property(
      fc.array(step, { minLength: 1, maxLength: 120 }),
      fc.subarray(['a', 'b', 'c', 'd'], { minLength: 1 }),
      (steps, available) => {
        const routes = ['a', 'b', 'c', 'd'].map((name) => measured(name));
        const running: ReturnType<RouteMeasure['began']>[] = [];
        for (const { number, ends, which } of steps) {
          if (ends) {
            for (const attempt of running.splice(which % (running.length + 1), 1)) attempt.ended(0, false);
            continue;
          }
          const first = namesOf('affinity', routes, {
            request: { turns: conversation(number), maxOutputTokens: null, promptCacheKey: null },
            availability: ({ upstream }) => (available.includes(upstream) ? 'available' : 'failing'),
          }).charAt(0);
          const route = routes.find(({ upstream }) => upstream === first);
          if (route === undefined) throw new Error('no route came first');
          running.push(route.measure.began(0));
          expect(available).toContain(first);
          expect(route.measure.inFlight).toBeLessThanOrEqual(
            Math.ceil((1.25 * running.length) / available.length),
          );
        }
      },
    );
    fc.assert(property, { ...propertyRun(), numRuns: 200 });
  });

  test('is that of the conversation if no route is available', () => {
    const cooling = namesOf('affinity', replicas, {
      request: { turns: conversation(1), maxOutputTokens: null, promptCacheKey: null },
      availability: () => 'cooling',
    });
    expect(cooling).toBe(orderOf(conversation(1)));
  });
});
