import { expect, test } from 'vitest';
import { createDemoUpstream } from '../../src/transport/demo-upstream.ts';
import { createFakeClock } from '../support/fake-clock.ts';

test('a body that is no Chat Completions request fails, and leaves no timer behind', async () => {
  const clock = createFakeClock();
  const demo = createDemoUpstream({ firstByteMs: 1_000, idleMs: 1_000, totalMs: 1_000 }, clock);
  const call = { upstream: 'demo', method: 'POST', path: '/responses', stream: true } as const;
  const { signal } = new AbortController();
  for (const body of ['{"input":"Hi"}', '{'])
    await expect(demo.call({ ...call, body, leftMs: 1_000, fresh: false }, signal)).rejects.toBeInstanceOf(
      Error,
    );
  expect(clock.scheduled).toBe(0);
});
