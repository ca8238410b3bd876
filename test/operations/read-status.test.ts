import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { RunningRequest } from '../../src/domain/ports/running-requests.ts';
import { allAnswers } from '../../src/cli/workers/ask-all.ts';
import { createQuestions, workerAnswerMs } from '../../src/cli/workers/messages.ts';
import type { WorkerQuestion } from '../../src/cli/workers/messages.ts';
import { maxStatusRows, readStatus } from '../../src/operations/read-status.ts';
import type { StatusSources, ProcessStatus } from '../../src/operations/read-status.ts';
import { presentStatus } from '../../src/http/present/status.ts';
import { addUpEndings } from '../../src/telemetry/recent-endings.ts';
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
    permitWait: null,
    mode: 'sync',
    model: 'small',
    upstream: 'local',
    firstTextMs: null,
    listening: null,
    joined: null,
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
      firstTexts: [],
      endings: {},
    }),
    workers: async () => null,
    addUp: addUpEndings,
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
    local: { state: 'ok', running: 2, waiting: 0 },
    other: { state: 'unknown', running: 0, waiting: 0 },
  });
  expect(presentStatus(status, 1)).toMatchObject({
    node: 'this:1',
    in_flight: { data: [{ request_id: 'req_1' }], has_more: true },
    ledger: { imbalance: '-0.01', root: { number: 3, created_at: '1970-01-01T00:00:00.000Z' } },
  });
});

test.each<[string, Partial<StatusSources>]>([
  ['fails', { everywhere: { list: () => Promise.reject(new Error('away')) } }],
  ['hangs', { everywhere: { list: never }, namesOf: never, whyNotReady: never, workers: never }],
])('a database that %s leaves the requests of this process', async (_case, broken) => {
  const { clock, all } = sources(broken);
  const read = readStatus(all);
  await setImmediate();
  clock.advance(4_000);
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

test('a request that has joined another one does not wait', async () => {
  const list = async () => [running(1, { listening: 2 }), running(2, { hasSlot: false, joined: 'req_1' })];
  const status = await readStatus(sources({ everywhere: { list } }).all);
  expect([status.running, status.waiting]).toEqual([2, 0]);
  expect(presentStatus(status, 2).in_flight.data).toMatchObject([
    { listening: 2, joined: null, waits_for: null },
    { listening: null, joined: 'req_1', waits_for: null },
  ]);
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

function worker(more: Partial<ProcessStatus> = {}): ProcessStatus {
  return {
    state: 'ready',
    reason: null,
    recent: { seconds: 60, requests: 10, outputTokens: 5, endings: { completed: 10 }, firstTexts: [[3, 4]] },
    upstreams: { local: { state: 'ok' }, other: { state: 'unknown' } },
    ledger: { openHolds: null, imbalanceNanos: null, settlementLagMs: 3, root: null },
    ...more,
  };
}

test('several workers are shown as one: sums, ready if one is, and an upstream as its worst worker has it', async () => {
  const failing = { state: 'failing', cause: 'connection refused' } as const;
  const auditing = { openHolds: 7, imbalanceNanos: 0, settlementLagMs: 0, root: { number: 3, madeAtMs: 0 } };
  const workers = async () => [
    worker({ state: 'not ready', reason: 'no list', upstreams: { local: failing, gone: failing } }),
    worker({ upstreams: { local: { state: 'ok' }, other: { state: 'ok' } } }),
    worker({ ledger: auditing }),
  ];
  const status = await readStatus(sources({ workers, whyNotReady: async () => 'no list' }).all);
  expect(status).toMatchObject({
    state: 'ready',
    reason: null,
    recent: { seconds: 60, requests: 30, outputTokens: 15, endings: { completed: 30 } },
    upstreams: { local: { ...failing, running: 2 }, other: { state: 'ok', running: 0 } },
    ledger: { ...auditing, settlementLagMs: 3 },
  });
  expect(Object.keys(status.upstreams)).toEqual(['local', 'other']);
});

test('a worker that hangs is left out, and no other one with it', async () => {
  const { clock, all } = sources();
  const hanging = createQuestions<WorkerQuestion>(() => {}, clock, workerAnswerMs);
  const others = [1, 2].map(() => ({ ask: async () => JSON.stringify(worker()) }));
  const workers = async () => {
    // The question is on its way to the primary process, which then waits as long as it does for any worker.
    await setImmediate();
    const { promise: back, resolve } = Promise.withResolvers<void>();
    const told = await allAnswers([hanging, ...others], 'status');
    clock.schedule(1, resolve);
    await back;
    return JSON.parse(told) as ProcessStatus[];
  };
  const read = readStatus({ ...all, workers });
  for (let passed = 0; passed <= workerAnswerMs; passed += 500) {
    await setImmediate();
    clock.advance(500);
  }
  expect((await read).recent.requests).toBe(20);
});
