import { expect, test } from 'vitest';
import { count } from '../../src/shared/count.ts';

test('a count has its noun in the plural for all numbers but 1', () => {
  expect([0, 1, 2].map((number) => count(number, 'record'))).toEqual(['0 records', '1 record', '2 records']);
});
