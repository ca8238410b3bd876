import { describe, expect, test } from 'vitest';
import { orderRoutes } from '../../src/domain/routing.ts';
import type { Route } from '../../src/domain/routing.ts';
import { localRoute } from '../support/model-source.ts';
import { randomNumbers } from '../support/random-numbers.ts';

const route = (upstream: string, weight: number | null = null): Route => ({
  ...localRoute,
  upstream,
  weight,
});
const names = (routes: readonly Route[]): string => routes.map(({ upstream }) => upstream).join('');

describe('the order in which routes are tried', () => {
  test('is that of the list if no route has a weight', () => {
    expect(names(orderRoutes([route('a'), route('b'), route('c')], () => 0.99))).toBe('abc');
  });

  test('puts each of two weighted neighbours first in proportion to its weight, and contains both', () => {
    const { random } = randomNumbers();
    const routes = [route('a', 3), route('b', 1)];
    let first = 0;
    for (let time = 0; time < 4_000; time++) {
      const ordered = names(orderRoutes(routes, random));
      expect(['ab', 'ba']).toContain(ordered);
      if (ordered === 'ab') first++;
    }
    expect(first / 4_000).toBeGreaterThan(0.72);
    expect(first / 4_000).toBeLessThan(0.78);
  });

  test('shuffles only neighbours with a weight, and the others keep their place', () => {
    const { random } = randomNumbers();
    const routes = [route('a'), route('b', 1), route('c', 1), route('d'), route('e', 1)];
    const seen = new Set(Array.from({ length: 100 }, () => names(orderRoutes(routes, random))));
    expect([...seen].toSorted()).toEqual(['abcde', 'acbde']);
  });
});
