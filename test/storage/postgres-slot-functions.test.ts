import { expect, test } from 'vitest';
import { createSlotStore } from '../../src/storage/postgres/slots/slot-store.ts';

test('only those functions of slots name what they lock that work on one key', async () => {
  const named: (string | null)[] = [];
  const slots = createSlotStore(
    {
      async callFunction(_called, _spreadBy, _values, rows = null) {
        named.push(rows);
        return [{ verdict: 'waiting' }];
      },
      lookUp: () => Promise.resolve([]),
    },
    () => 'owner',
  );
  const limits = { concurrency: 1, requestsPerMinute: 100, queueWaitMs: 0 };
  const request = { keyId: 'key', requestId: 'request', limits };
  await Promise.allSettled([
    slots.take({ ...request, mayWait: true }),
    slots.release('key', 'request'),
    slots.leave(request),
    slots.restore('key', ['request']),
    slots.endedWaits(),
    slots.followLimits(limits, new Map()),
    slots.freeLost(),
    slots.forgetStarts(''),
  ]);
  expect(named).toEqual([
    'slots of key',
    'slots of key',
    'slots of key',
    'slots of key',
    null,
    null,
    null,
    null,
  ]);
});
