import { afterEach, beforeEach, expect, test } from 'vitest';
import type { OpenedRecord } from '../../src/domain/money/consumption.ts';
import { groupIdOf } from '../../src/domain/limits/groups.ts';
import type { ExchangeSummary } from '../../src/domain/exchange-summary.ts';
import type { UpstreamAnswer } from '../../src/domain/ports/upstreams.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import type { PipelineHarness } from '../support/pipeline-harness.ts';
import { modelPrice } from '../support/model-price.ts';
import { chatFrames } from '../support/scripted-upstream.ts';
import { StorageError } from '../../src/domain/storage-refusal.ts';
import { bodyOf } from '../support/body-of.ts';

const price = modelPrice({ input: 1_000_000, output: 1_000_000 });
const body = { model: 'm', stream: true, messages: [{ role: 'user', content: 'x' }] };

let pipeline: PipelineHarness;
beforeEach(async () => {
  pipeline = await openPipeline(price, 10);
});
afterEach(() => pipeline.close());

test('a finished answer reaches its client in full although the limiter can’t release its slot', async () => {
  const ended: ExchangeSummary[] = [];
  const { limiter, telemetry } = pipeline.ports;
  const instead = {
    limiter: { ...limiter, release: () => Promise.reject(new Error('away')) },
    telemetry: { ...telemetry, exchangeEnded: (summary: ExchangeSummary) => void ended.push(summary) },
  };
  const keyId = await pipeline.addKey(1_000_000);
  const request = await pipeline.start(keyId, body, 'chat', instead);
  request.call?.give(chatFrames(['one ', 'two']).join(''));
  request.call?.give(null);
  await request.done;
  expect(request.sent.text).toMatch(/two[^]*data: \[DONE\]\n\n$/);
  expect(ended).toMatchObject([{ outcome: 'completed', chargeNanos: 18 }]);
  expect(pipeline.faults).toEqual(['slot not released']);
  expect(pipeline.ports.inFlight.all()).toEqual([]);
});

test('a slot of a group is given back although that of the key can’t be', async () => {
  const { limiter } = pipeline.ports;
  const keyId = await pipeline.addKey(null);
  const group = { id: groupIdOf('shared'), name: 'shared', concurrency: 1, budget: null };
  pipeline.change(keyId, { group: 'shared' });
  const instead = {
    groups: () => new Map([['shared', group]]),
    limiter: {
      acquire: limiter.acquire.bind(limiter),
      knownRefusal: () => null,
      release: (id: string, requestId: string) =>
        id === keyId ? Promise.reject(new Error('away')) : limiter.release(id, requestId),
    },
  };
  for (const end of ['first', 'second']) {
    const request = await pipeline.start(keyId, body, 'chat', instead);
    request.call?.give(chatFrames([end]).join(''));
    request.call?.give(null);
    await request.done;
    expect(request.sent.text).toContain(end);
  }
  expect(pipeline.faults).toEqual(['slot not released', 'slot not released']);
});

test.each([true, false])(
  'an answer whose settlement is kept for later, or neither made nor kept, shows no charge (streamed: %s)',
  async (stream) => {
    const { records } = pipeline.ports;
    const kept = { records: { ...records, takesWrites: true, settle: () => Promise.resolve(null) } };
    const away = {
      records: { ...records, takesWrites: true, settle: () => Promise.reject(new Error('no')) },
    };
    const shown = { ...pipeline.ports.defaultCompatibility, usageCost: true, chargeComment: true };
    const keyId = await pipeline.addKey(1_000_000);
    const asked = { ...body, stream, ...(stream ? { stream_options: { include_usage: true } } : {}) };
    const answers = [];
    for (const instead of [{}, kept, away]) {
      const request = await pipeline.start(keyId, asked, 'chat', { ...instead, defaultCompatibility: shown });
      request.call?.give(chatFrames(['one']).join(''));
      request.call?.give(null);
      await request.done;
      answers.push([request.sent.chargeNanos, /x-textgate-charge|"cost"/.test(request.sent.text)]);
    }
    expect(answers).toEqual([
      [stream ? null : 18, true],
      [null, false],
      [null, false],
    ]);
    expect(pipeline.faults).toEqual(['consumption record not settled']);
  },
);

test('an answer that may not be sent, because its record is not begun, is not measured as in progress', async () => {
  const { records } = pipeline.ports;
  const away = { ...records, takesWrites: true, open: () => Promise.reject(new Error('away')) };
  const request = await pipeline.start(await pipeline.addKey(null), body, 'chat', { records: away });
  expect(pipeline.measure.inFlight).toBe(1);
  request.call?.give(chatFrames(['one ']).slice(0, 2).join(''));
  await request.done;
  expect(request.sent.status).toBe(503);
  expect([pipeline.measure.inFlight, pipeline.measure.waiting]).toEqual([0, 0]);
});

test('a request gets a 500 when the limiter fails', async () => {
  const { limiter } = pipeline.ports;
  const instead = {
    limiter: { ...limiter, acquire: () => Promise.reject(new Error('away')) },
  };
  const request = await pipeline.start(await pipeline.addKey(null), body, 'chat', instead);
  await request.done;
  expect(request.sent.status).toBe(500);
  expect(pipeline.ports.inFlight.all()).toEqual([]);
});

test('a request gets a 503 when the database that has the slots is away', async () => {
  const { limiter } = pipeline.ports;
  const away = () => Promise.reject(new StorageError('away'));
  const instead = { limiter: { ...limiter, acquire: away } };
  const request = await pipeline.start(await pipeline.addKey(null), body, 'chat', instead);
  await request.done;
  expect(request.sent.status).toBe(503);
  expect(request.sent.text).toContain('storage_unavailable');
  expect(pipeline.faults).toEqual([]);
});

test.each([
  ['its key, which comes after that of its group', 'key', 0],
  ['its group, for which it waits with one of its key', 'group', 1],
])(
  'a request gets a 503, and has no slot, when the database goes away before it has the slot of %s',
  async (_which, ofWhom, asksBefore) => {
    const { limiter } = pipeline.ports;
    const keyId = await pipeline.addKey(null);
    const group = { id: groupIdOf('shared'), name: 'shared', concurrency: 1, budget: null };
    pipeline.change(keyId, { group: 'shared', limits: { queueWaitMs: asksBefore * 60_000 } });
    const limits = { concurrency: 1, requestsPerMinute: 1_000, queueWaitMs: 0 };
    const { signal } = new AbortController();
    if (asksBefore > 0) await limiter.acquire(group.id, 'another', limits, signal);
    let asks = 0;
    const failing: typeof limiter = {
      acquire(id, ...asked) {
        const isAway = (id === keyId ? 'key' : 'group') === ofWhom && asks++ >= asksBefore;
        return isAway ? Promise.reject(new StorageError('away')) : limiter.acquire(id, ...asked);
      },
      knownRefusal: () => null,
      release: limiter.release.bind(limiter),
    };
    const instead = { limiter: failing, groups: () => new Map([['shared', group]]) };
    const request = await pipeline.start(keyId, body, 'chat', instead);
    await request.done;
    expect(request.sent.status).toBe(503);
    await limiter.release(group.id, 'another');
    for (const id of [keyId, group.id])
      expect(await limiter.acquire(id, 'next', limits, signal)).toMatchObject({ verdict: 'granted' });
  },
);

/** An upstream whose answer is driven by the test, and the number of its releases. */
function upstreamAnswering(answer: Partial<UpstreamAnswer>) {
  let released = 0;
  const whole: UpstreamAnswer = {
    kind: 'answer',
    status: 200,
    contentType: 'text/event-stream',
    retryAfterMs: null,
    ...bodyOf(async () => null),
    release: () => void released++,
    ...answer,
  };
  return { upstreams: { call: async () => whole }, released: () => released };
}

test('an upstream answer that can’t be read is released', async () => {
  const { upstreams, released } = upstreamAnswering({
    consume() {
      throw new Error('a bug');
    },
  });
  const request = await pipeline.start(await pipeline.addKey(null), body, 'chat', { upstreams });
  await request.done;
  expect(request.sent.status).toBe(500);
  expect(released()).toBe(1);
});

test('the wait for an error body leaves no timer behind when the client disconnects', async () => {
  const before = pipeline.clock.scheduled;
  const { upstreams } = upstreamAnswering({
    status: 400,
    ...bodyOf(async () => ({ kind: 'fault', fault: 'interrupted' })),
  });
  const request = await pipeline.start(await pipeline.addKey(null), body, 'chat', { upstreams });
  request.leave();
  await request.done;
  expect(pipeline.clock.scheduled).toBe(before);
});

test('a record that is still being begun when its upstream call throws is settled, not left open', async () => {
  const { records } = pipeline.ports;
  const begun = Promise.withResolvers<void>();
  const instead = {
    upstreams: { call: () => Promise.reject(new Error('a fault of our own')) },
    records: {
      ...records,
      takesWrites: true,
      async open(record: OpenedRecord) {
        await begun.promise;
        return records.open(record);
      },
    },
  };
  const request = await pipeline.start(await pipeline.addKey(null), body, 'chat', instead);
  begun.resolve();
  await request.done;
  await pipeline.quiet();
  const [rows] = await pipeline.engine.run([
    { sql: 'SELECT outcome FROM records WHERE request_id = ?', values: [request.id] },
  ]);
  expect(rows).toEqual([{ outcome: 'server_error' }]);
  expect(request.sent.status).toBe(500);
});

test('a slot counts as taken while its key is looked up again after the wait', async () => {
  const { keys, inFlight } = pipeline.ports;
  const again = Promise.withResolvers<void>();
  let lookUps = 0;
  const instead = {
    defaultLimits: { ...pipeline.ports.defaultLimits, queueWaitMs: 1_000 },
    keys: {
      ...keys,
      async find(presented: string) {
        if (++lookUps === 2) await again.promise;
        return keys.find(presented);
      },
    },
  };
  const keyId = await pipeline.addKey(null);
  const request = await pipeline.start(keyId, body, 'chat', instead);
  expect((await inFlight.count([keyId])).get(keyId)).toBe(1);
  again.resolve();
  await pipeline.quiet();
  request.leave();
  await request.done;
});
