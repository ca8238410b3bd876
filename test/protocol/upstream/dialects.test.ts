import { expect, test } from 'vitest';
import { dialects } from '../../../src/protocol/upstream/dialects.ts';
import type { DialectName } from '../../../src/protocol/upstream/dialects.ts';

test.each<[DialectName, number, string]>([
  ['chat', 1, '/models'],
  ['responses', 16, '/models'],
  ['anthropic', 1, '/models?limit=1000'],
  ['gemini', 1, '/models?pageSize=1000'],
])('%s takes a cap of %i tokens at the least, and lists its models at %s', (name, least, path) => {
  const { leastOutputTokens, modelsPath } = dialects[name];
  expect([leastOutputTokens, modelsPath]).toEqual([least, path]);
});
