import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { UpstreamAnswer, UpstreamFault, Upstreams } from '../../src/domain/ports/upstreams.ts';
import { createUpstreamHealth } from '../../src/domain/upstream-health.ts';
import { readAnswerBody } from '../support/client-answer.ts';
import { localSource } from '../support/model-source.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import { propertyRun } from '../support/property-run.ts';
import { chatFrames } from '../support/scripted-upstream.ts';
import { modelPrice } from '../support/model-price.ts';
import { bodyOf } from '../support/body-of.ts';

const price = modelPrice({ input: 1_000_000_000, cachedInput: 1_000_000_000, output: 2_000_000_000 });
/** The cost of the frames' own usage: 11 tokens in, 7 out. */
const wholeCharge = 11 * 1_000 + 7 * 2_000;
const frames = chatFrames(['one ', 'two']);
const runs = Number(process.env['FAILOVER_RUNS'] ?? 10_000);

/** The most attempts of one request. */
const budget = 4;

/** An upstream's behaviour and its consequence: a good answer, another route, a refusal, or a broken answer. */
interface Behaviour {
  readonly means: 'good' | 'elsewhere' | 'refused' | 'midway';
  readonly result: string;
  readonly code: string | null;
  play(): UpstreamAnswer | UpstreamFault;
}

const elsewhere = (result: string, code: string, play: Behaviour['play']): Behaviour => ({
  means: 'elsewhere',
  result,
  code,
  play,
});
const status = (value: number, result: string, code: string): Behaviour =>
  elsewhere(result, code, () => answer(value, 'application/json', ['{"error":{"message":"no"}}', null]));
const stream = (parts: readonly (string | null | UpstreamFault)[]): UpstreamAnswer =>
  answer(200, 'text/event-stream', parts);
const [opening = '', firstText = '', ...rest] = frames;

const good: Behaviour = {
  means: 'good',
  result: 'ok',
  code: null,
  play: () => stream([frames.join(''), null]),
};

/** The behaviours of an upstream, by name. */
const behaviours: Readonly<Record<string, Behaviour>> = {
  good,
  'good, in pieces': { ...good, play: () => stream([opening, firstText, ...rest, null]) },
  'refuses the connection': elsewhere('unreachable', 'upstream_unavailable', () => ({
    kind: 'fault',
    fault: 'unreachable',
  })),
  'says nothing': elsewhere('timeout', 'upstream_timeout', () => ({
    kind: 'fault',
    fault: 'first_byte_timeout',
  })),
  'stalls before its first word': elsewhere('timeout', 'upstream_timeout', () =>
    stream([opening, { kind: 'fault', fault: 'idle_timeout' }]),
  ),
  'breaks before its first word': elsewhere('truncated', 'upstream_truncated', () =>
    stream([opening, { kind: 'fault', fault: 'broken' }]),
  ),
  'ends before its first word': elsewhere('truncated', 'upstream_truncated', () => stream([opening, null])),
  'answers 500': status(500, 'error', 'upstream_error'),
  'answers 503': status(503, 'error', 'overloaded'),
  'answers 529': status(529, 'overloaded', 'overloaded'),
  'answers 429': status(429, 'rate_limited', 'upstream_rate_limited'),
  'answers 401': status(401, 'auth', 'upstream_auth'),
  'answers 404': status(404, 'unserved', 'upstream_error'),
  'sends a page': elsewhere('invalid', 'upstream_invalid', () => answer(200, 'text/html', ['<html>', null])),
  'sends nothing': elsewhere('invalid', 'upstream_invalid', () => answer(200, 'application/json', [null])),
  'sends an error with 200': elsewhere('error', 'upstream_error', () =>
    stream(['data: {"error":{"message":"no"}}\n\n', null]),
  ),
  'sends a whole body without an end': elsewhere('truncated', 'upstream_truncated', () =>
    answer(200, 'application/json', [
      '{"choices":[{"message":{"content":"one "},"finish_reason":null}]}',
      null,
    ]),
  ),
  'sends no JSON': elsewhere('invalid', 'upstream_invalid', () => stream(['data: {oops\n\n', null])),
  'sends a line without an end': elsewhere('invalid', 'upstream_invalid', () =>
    stream([`data: ${'x'.repeat(1_100_000)}`, null]),
  ),
  'answers 400': { ...status(400, 'refused', 'invalid_value'), means: 'refused' },
  'finds the text too long': {
    ...elsewhere('refused', 'context_length_exceeded', () =>
      answer(400, 'application/json', ['{"error":{"code":"context_length_exceeded"}}', null]),
    ),
    means: 'refused',
  },
  'fails right after its first word': {
    ...elsewhere('error', 'upstream_error', () =>
      stream([`${opening}${firstText}data: {"error":{"message":"no"}}\n\n`, null]),
    ),
    means: 'midway',
  },
  'breaks in the middle': {
    ...elsewhere('truncated', 'upstream_truncated', () =>
      stream([opening + firstText, { kind: 'fault', fault: 'broken' }]),
    ),
    means: 'midway',
  },
  'stalls in the middle': {
    ...elsewhere('timeout', 'upstream_timeout', () =>
      stream([opening + firstText, { kind: 'fault', fault: 'idle_timeout' }]),
    ),
    means: 'midway',
  },
  'fails in the middle': {
    ...elsewhere('error', 'upstream_error', () =>
      stream([opening + firstText, 'data: {"error":{"message":"no"}}\n\n', null]),
    ),
    means: 'midway',
  },
};

const stale: Behaviour = elsewhere('stale', 'upstream_unavailable', () => ({
  kind: 'fault',
  fault: 'stale',
}));

function answer(
  statusCode: number,
  contentType: string,
  parts: readonly (string | null | UpstreamFault)[],
): UpstreamAnswer {
  const left = [...parts];
  return {
    kind: 'answer',
    status: statusCode,
    contentType,
    retryAfterMs: null,
    ...bodyOf(async () => {
      const part = left.shift() ?? null;
      return typeof part === 'string' ? Buffer.from(part) : part;
    }),
    release: () => {},
  };
}

/** The behaviour of three upstreams, and whether the kept connection to each was found closed. */
const upstreamPlan = fc.record({
  name: fc.constantFrom(...Object.keys(behaviours)),
  isStale: fc.boolean(),
});
const plan = fc.record({
  upstreams: fc.tuple(upstreamPlan, upstreamPlan, upstreamPlan),
  stream: fc.boolean(),
  protocol: fc.constantFrom('chat' as const, 'responses' as const),
});

/** The expected calls, in order: one upstream after the other until a final answer, within the limit of attempts. */
function expectedCalls(upstreams: readonly { readonly name: string; readonly isStale: boolean }[]) {
  const calls: Behaviour[] = [];
  for (const { name, isStale } of upstreams) {
    const behaviour = behaviours[name] ?? good;
    const made = isStale ? [stale, behaviour] : [behaviour];
    calls.push(...made.slice(0, budget - calls.length));
    if (calls.length === budget || (calls.at(-1) === behaviour && behaviour.means !== 'elsewhere')) break;
  }
  return calls;
}

test(`a request with three upstreams is answered if one works, and charged once (${runs} random cases)`, async () => {
  const pipeline = await openPipeline(price, 100);
  const keyId = await pipeline.addKey(1_000_000_000_000);
  let charged = 0;
  const property = fc.asyncProperty(plan, async ({ upstreams: planned, stream: isStream, protocol }) => {
    const dispatched: string[] = [];
    const left = planned.map(({ name, isStale }) => [...(isStale ? [stale] : []), behaviours[name] ?? good]);
    const upstreams: Upstreams = {
      async call({ upstream }) {
        dispatched.push(upstream);
        const [next = stale] = left[Number(upstream)]?.splice(0, 1) ?? [];
        return next.play();
      },
    };
    const routes = planned.map((_, index) => ({
      ...localSource,
      upstream: String(index),
      model: 'm',
      weight: null,
    }));
    const model = { id: 'small', createdAtSeconds: 0, price, holdTokens: 100, routes };
    const asked =
      protocol === 'chat' ? { messages: [{ role: 'user', content: 'hello' }] } : { input: 'hello' };
    const request = await pipeline.start(keyId, { model: 'small', stream: isStream, ...asked }, protocol, {
      upstreams,
      models: { find: async () => model, list: async () => [model] },
      health: createUpstreamHealth(pipeline.clock),
    });
    await request.done;

    const calls = expectedCalls(planned);
    const last = calls.at(-1) ?? good;
    expect(dispatched).toHaveLength(calls.length);
    const seen = readAnswerBody(protocol, isStream && request.sent.status === null, request.sent.text);
    const whole = last.means === 'good';
    expect(seen.ending).toBe(whole ? 'stop' : 'failure');
    expect(seen.text).toBe(whole ? 'one two' : last.means === 'midway' && isStream ? 'one ' : '');
    expect(whole ? [null] : calls.map(({ code }) => code)).toContain(seen.code);

    const [rows] = await pipeline.engine.run([
      {
        sql: 'SELECT outcome, upstream, attempts, charge FROM records WHERE request_id = ?',
        values: [request.id],
      },
    ]);
    const record = rows?.[0];
    const made = JSON.parse(String(record?.['attempts'])) as { upstream: string; result: string }[];
    expect(made.map(({ result }) => result)).toEqual(calls.map(({ result }) => result));
    expect(made.map(({ upstream }) => upstream)).toEqual(dispatched);
    expect(dispatched).toContain(record?.['upstream']);
    const charge = Number(record?.['charge']);
    const isPart = last.means === 'midway' && isStream;
    const [least, most] = whole ? [wholeCharge, wholeCharge] : isPart ? [1, wholeCharge] : [0, 0];
    expect(charge).toBeGreaterThanOrEqual(least);
    expect(charge).toBeLessThanOrEqual(most);
    charged += charge;
  });
  await fc.assert(property, propertyRun(runs));
  const accounts = await pipeline.store.accounts([keyId]);
  expect(accounts.get(keyId)).toMatchObject({ heldNanos: 0, spentNanos: charged });
  expect(pipeline.faults).toEqual([]);
  await pipeline.close();
}, 240_000);
