import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { RunningRequest } from '../../src/domain/ports/running-requests.ts';
import { maxStatusRows, readStatus } from '../../src/operations/read-status.ts';
import type { StatusSources } from '../../src/operations/read-status.ts';
import { presentStatus } from '../../src/http/present/status.ts';
import { createFakeClock } from '../support/fake-clock.ts';

function running(number: number, more: Partial<RunningRequest> = {}): RunningRequest {
  return {
    requestId: `req_${number}`,
    protocol: 'chat',
    createdAtMs: number,
    keyId: 'key_1',
    keyName: 'own',
    groupId: null,
    hasSlot: true,
    mode: 'sync',
    model: 'small',
    upstream: 'local',
    firstTextMs: null,
    node: null,
    ...more,
  };
}

const elsewhere = (number: number): RunningRequest => {
  const { keyName: _own, ...rest } = running(number, { keyId: 'key_2', node: 'other:1' });
  return rest;
};

const never = <Result>(): Promise<Result> => new Promise<Result>(() => {});

function sources(more: Partial<StatusSources> = {}) {
  const clock = createFakeClock();
  const here = { accepting: true, isLeaving: false, list: async () => [running(1)] };
  const all: StatusSources = {
    clock,
    version: '1.2.3',
    node: 'this:1',
    here,
    everywhere: { list: async () => [running(1), elsewhere(2)] },
    namesOf: async () => new Map([['key_2', 'far']]),
    recent: () => ({
      seconds: 1,
      requests: 0,
      outputTokens: 0,
      firstTextMs: { p50: null, p99: null },
      endings: {},
    }),
    ledger: () => ({
      openHolds: null,
      imbalanceNanos: -10_000_000,
      settlementLagMs: 0,
      root: { number: 3, madeAtMs: 0 },
    }),
    upstreamReports: () => ({ local: { state: 'ok' }, other: { state: 'unknown' } }),
    whyNotReady: async () => null,
    ...more,
  };
  return { clock, all };
}

test('a request of another node gets the name of its key by a look-up, one of this process has it', async () => {
  const status = await readStatus(sources().all);
  expect(status.rows.map(({ keyName, node }) => [keyName, node])).toEqual([
    ['own', null],
    ['far', 'other:1'],
  ]);
  expect(status).toMatchObject({ state: 'ready', running: 2, hasAllNodes: true });
  expect(status.upstreams).toEqual({
    local: { state: 'ok', running: 2 },
    other: { state: 'unknown', running: 0 },
  });
  expect(presentStatus(status, 1)).toMatchObject({
    node: 'this:1',
    in_flight: { data: [{ request_id: 'req_1' }], has_more: true },
    ledger: { imbalance: '-0.01', root: { number: 3, created_at: '1970-01-01T00:00:00.000Z' } },
  });
});

test.each<[string, Partial<StatusSources>]>([
  ['fails', { everywhere: { list: () => Promise.reject(new Error('away')) } }],
  ['hangs', { everywhere: { list: never }, namesOf: never, whyNotReady: never }],
])('a database that %s leaves the requests of this process', async (_case, broken) => {
  const { clock, all } = sources(broken);
  const read = readStatus(all);
  await setImmediate();
  clock.advance(2_000);
  const status = await read;
  expect(status.rows.map(({ requestId }) => requestId)).toEqual(['req_1']);
  expect(status.hasAllNodes).toBe(false);
  expect(status.state).toBe(broken.whyNotReady === undefined ? 'ready' : 'not ready');
});

test('names that can not be read in time are left out', async () => {
  const { clock, all } = sources({ namesOf: never });
  const read = readStatus(all);
  await setImmediate();
  clock.advance(2_000);
  expect((await read).rows.map(({ keyName }) => keyName)).toEqual(['own', null]);
});

test('shows at most a thousand requests, and counts all', async () => {
  const many = Array.from({ length: maxStatusRows + 5 }, (_value, at) => running(at, { hasSlot: at > 0 }));
  const status = await readStatus(sources({ everywhere: { list: async () => many } }).all);
  expect([status.rows.length, status.running, status.waiting]).toEqual([maxStatusRows, maxStatusRows + 4, 1]);
  expect(presentStatus(status, maxStatusRows).in_flight.has_more).toBe(true);
});

test.each([
  [{ accepting: false, isLeaving: true }, 'draining'],
  [{ accepting: true, isLeaving: true }, 'draining'],
])('a process that ends is draining: %j', async (flags, state) => {
  const here = { ...flags, list: async () => [] };
  expect(await readStatus(sources({ here, whyNotReady: async () => 'shutting down' }).all)).toMatchObject({
    state,
    reason: 'shutting down',
  });
});
