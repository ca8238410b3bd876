import { afterAll, beforeAll, describe } from 'vitest';
import { buildBundle } from '../support/bundle.ts';
import type { Bundle } from '../support/bundle.ts';
import { testShippedWorkers } from '../support/shipped-workers.ts';

let bundle: Bundle;
beforeAll(async () => {
  bundle = await buildBundle();
});
afterAll(() => bundle.remove());

describe('the bundle', () => {
  testShippedWorkers(() => bundle.program);
});
