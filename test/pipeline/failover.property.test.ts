import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Upstreams } from '../../src/domain/ports/upstreams.ts';
import { RouteMeasure } from '../../src/domain/routing/route-measure.ts';
import { UpstreamHealth } from '../../src/domain/upstreams/upstream-health.ts';
import { readAnswerBody } from '../support/client-answer.ts';
import { localRoute, usualSettings } from '../support/model-source.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import { propertyRun } from '../support/property-run.ts';
import { modelPrice } from '../support/model-price.ts';
import { behaviours, good, stale } from '../support/upstream-behaviours.ts';
import type { Behaviour } from '../support/upstream-behaviours.ts';

const price = modelPrice({ input: 1_000_000_000, cachedInput: 1_000_000_000, output: 2_000_000_000 });
/** The cost of the frames' own usage: 11 tokens in, 7 out. */
const wholeCharge = 11 * 1_000 + 7 * 2_000;

/** The most attempts of one request. */
const budget = 4;

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

test('a request with three upstreams is answered if one works, and charged once', async () => {
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
      ...localRoute,
      upstream: String(index),
      model: 'm',
      measure: new RouteMeasure(),
    }));
    const model = { ...usualSettings, id: 'small', price, holdTokens: 100, routes };
    const asked =
      protocol === 'chat' ? { messages: [{ role: 'user', content: 'hello' }] } : { input: 'hello' };
    const request = await pipeline.start(keyId, { model: 'small', stream: isStream, ...asked }, protocol, {
      upstreams,
      models: { knows: () => true, find: async () => model, list: async () => [model] },
      health: new UpstreamHealth(pipeline.clock),
    });
    await request.done;
    // Whatever an upstream did, no attempt is left that a policy would count as in progress.
    for (const { measure } of routes) expect([measure.inFlight, measure.waiting]).toEqual([0, 0]);

    const calls = expectedCalls(planned);
    const last = calls.at(-1) ?? good;
    expect(dispatched).toHaveLength(calls.length);
    const seen = readAnswerBody(protocol, isStream && request.sent.status === null, request.sent.text);
    const whole = last.means === 'good';
    expect(seen.ending).toBe(whole ? 'stop' : 'failure');
    expect(seen.text).toBe(whole ? 'one two' : last.means === 'midway' && isStream ? 'one ' : '');
    expect(whole ? [null] : calls.map(({ code }) => code)).toContain(seen.code);

    const record = await pipeline.store.findRecord(request.id, null);
    const made = record?.attempts ?? [];
    expect(made.map(({ result }) => result)).toEqual(calls.map(({ result }) => result));
    expect(made.map(({ upstream }) => upstream)).toEqual(dispatched);
    expect(dispatched).toContain(record?.upstream);
    const charge = record?.chargeNanos ?? Number.NaN;
    const isPart = last.means === 'midway' && isStream;
    const [least, most] = whole ? [wholeCharge, wholeCharge] : isPart ? [1, wholeCharge] : [0, 0];
    expect(charge).toBeGreaterThanOrEqual(least);
    expect(charge).toBeLessThanOrEqual(most);
    charged += charge;
  });
  await fc.assert(property, propertyRun(500));
  const accounts = await pipeline.store.accounts([keyId]);
  expect(accounts.get(keyId)).toMatchObject({ heldNanos: 0, spentNanos: charged });
  expect(pipeline.faults).toEqual([]);
  await pipeline.close();
}, 240_000);
