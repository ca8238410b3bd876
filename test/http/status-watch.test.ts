import { EventEmitter } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createStatusWatch } from '../../src/http/admin/status-watch.ts';
import type { Response } from '../../src/http/router.ts';
import type { Status } from '../../src/operations/read-status.ts';
import { createFakeClock } from '../support/fake-clock.ts';

test('a watcher that does not read misses events, and gets the latest one when it reads again', async () => {
  const clock = createFakeClock();
  let reads = 0;
  const read = async (): Promise<Status> => ({
    atMs: clock.now(),
    version: '1',
    node: null,
    state: 'ready',
    reason: null,
    running: ++reads,
    waiting: 0,
    rows: [],
    hasAllNodes: true,
    recent: { seconds: 1, requests: 0, outputTokens: 0, firstTextMs: { p50: null, p99: null }, endings: {} },
    upstreams: {},
    ledger: { openHolds: 0, imbalanceNanos: 0, settlementLagMs: 0, root: null },
  });
  const written: string[] = [];
  const response = Object.assign(new EventEmitter(), {
    writableLength: 0,
    writeHead: () => {},
    write: (text: string) => written.push(text),
    end: () => {},
  });
  const watch = createStatusWatch(read, clock, () => {});
  expect(await watch.add(response as unknown as Response, 1, () => true)).toBeNull();
  expect(written).toHaveLength(1);
  response.writableLength = 1;
  for (let second = 0; second < 5; second++) {
    clock.advance(1_000);
    await setImmediate();
  }
  expect(written).toHaveLength(1);
  response.writableLength = 0;
  clock.advance(1_000);
  await setImmediate();
  expect(written).toHaveLength(2);
  expect(written[1]).toContain(`"running":${reads}`);
  expect(reads).toBe(7);
  response.emit('close');
  expect(clock.scheduled).toBe(0);
});
