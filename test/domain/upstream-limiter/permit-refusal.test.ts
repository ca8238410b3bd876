import { expect, test } from 'vitest';
import { permitRefusal } from '../../../src/domain/upstream-limiter/permit-refusal.ts';

test.each([
  [
    {
      kind: 'full',
      isTooLong: true,
      upstreams: ['far'],
      models: [],
      waiting: 3,
      expectedMs: 60_400,
    } as const,
    "The model's provider is used up to its limit, for longer than a request may wait for it. Retry in 61 s; your own key is within its limits.",
  ],
  [
    { kind: 'full', isTooLong: false, upstreams: ['far'], models: [], waiting: 2, expectedMs: 0 } as const,
    "The model's provider is used up to its limit, and no more requests may wait for it: 2 requests wait. Retry in 1 s; your own key is within its limits.",
  ],
  [
    { kind: 'full', isTooLong: false, upstreams: ['far'], models: [], waiting: 0, expectedMs: 0 } as const,
    "The model's provider is used up to its limit, and no more requests may wait for it. Retry in 1 s; your own key is within its limits.",
  ],
  [
    {
      kind: 'timed_out',
      upstreams: ['far'],
      models: [],
      waiting: 1,
      waitedMs: 1_006,
      expectedMs: 2_500,
    } as const,
    "This request waited 1.0 s for the model's provider, which is used up to its limit; 1 other request waits. Retry in 3 s; your own key is within its limits.",
  ],
  [
    {
      kind: 'timed_out',
      upstreams: ['far'],
      models: [],
      waiting: 0,
      waitedMs: 30_004,
      expectedMs: 0,
    } as const,
    "This request waited 30 s for the model's provider, which is used up to its limit; 0 other requests wait. Retry in 1 s; your own key is within its limits.",
  ],
])('a request that gets no permit is told whether others wait (%o)', (result, message) => {
  expect(permitRefusal(result)).toMatchObject({ code: 'upstream_busy', message });
});
