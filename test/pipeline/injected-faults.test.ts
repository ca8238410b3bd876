import { expect, test } from 'vitest';
import type { Limiter } from '../../src/domain/ports/limiter.ts';
import { sweepOrphans } from '../../src/background/monitor-ledger.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import { randomNumbers } from '../support/random-numbers.ts';
import { modelPrice } from '../support/model-price.ts';
import { propertyRun } from '../support/property-run.ts';

const exchanges = propertyRun(1_000).numRuns;
const price = modelPrice({ input: 3_000_000, cachedInput: 3_000_000, output: 7_000_000 });
const frames = [
  'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n',
  'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}\n\n',
  'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
  'data: [DONE]\n\n',
];

test('exchanges with exceptions and aborts at every stage leave no slot and no hold behind', async () => {
  const { random, seed } = randomNumbers();
  const pipeline = await openPipeline(price, 10);
  const { ports } = pipeline;
  let thrown = 0;
  /** Makes a port fail now and then, before or after its work. */
  const unreliable = <Work extends (...given: never[]) => unknown>(work: Work): Work =>
    (async (...given: never[]) => {
      const moment = random();
      if (moment < 0.02) throw new Error(`injected ${++thrown}`);
      const result = await work(...given);
      if (moment > 0.99) throw new Error(`injected ${++thrown}`);
      return result;
    }) as unknown as Work;
  const { models, records, upstreams, tokens, limiter, telemetry } = ports;
  let inProgress = 0;
  Object.assign(ports, {
    models: { ...models, find: unreliable(models.find.bind(models)) },
    records: {
      ...records,
      open: unreliable(records.open.bind(records)),
      settle: records.settle.bind(records),
    },
    upstreams: { call: unreliable(upstreams.call.bind(upstreams)) },
    tokens: { count: unreliable(tokens.count.bind(tokens)) },
    telemetry: {
      ...telemetry,
      waitBegan: () => {},
      waitEnded: () => {},
      exchangeBegan: () => void inProgress++,
      exchangeEnded: () => void inProgress--,
    },
    limiter: {
      ...limiter,
      acquire: unreliable(limiter.acquire.bind(limiter)),
      // Fails only after its work: a lost release would rightly keep its slot.
      async release(keyId, requestId) {
        await limiter.release(keyId, requestId);
        if (random() < 0.02) throw new Error(`injected ${++thrown}`);
      },
    } satisfies Limiter,
  });

  const keyIds = await Promise.all(Array.from({ length: 20 }, () => pipeline.addKey(1_000_000_000)));
  for (let round = 0; round < exchanges; round++) {
    const keyId = keyIds[Math.floor(random() * keyIds.length)] ?? '';
    const body = { model: 'm', stream: random() < 0.5, messages: [{ role: 'user', content: 'x' }] };
    const request = await pipeline.start(keyId, body);
    const steps = Math.floor(random() * (frames.length + 2));
    for (const frame of frames.slice(0, steps)) request.call?.give(frame);
    if (steps < frames.length) request.leave();
    else request.call?.give(null);
    await request.done;
  }

  expect(thrown).toBeGreaterThan(exchanges / 100);
  expect(await ports.inFlight.list()).toEqual([]);
  expect(inProgress).toBe(0);
  expect([pipeline.measure.inFlight, pipeline.measure.waiting]).toEqual([0, 0]);
  const { store } = pipeline;
  const orphans = await sweepOrphans(store, () => false, ports.clock.now() + 60_000);
  const accounts = await store.accounts(keyIds);
  for (const keyId of keyIds) {
    const decision = await limiter.acquire(
      keyId,
      'the only one',
      ports.defaultLimits,
      new AbortController().signal,
    );
    expect(decision.inFlight).toBe(1);
  }
  const openRecords = await pipeline.engine.run([
    { sql: 'SELECT request_id FROM open_requests', values: [] },
  ]);
  expect(openRecords).toEqual([[]]);
  for (const { heldNanos } of accounts.values()) expect(heldNanos).toBe(0);
  expect(await verifyLedger(pipeline.books)).toMatchObject({ imbalanceNanos: 0, faults: [] });
  process.stdout.write(
    `${exchanges} exchanges (seed ${seed}), ${thrown} exceptions, ${orphans} orphans swept: slots 0, holds 0\n`,
  );
  await pipeline.close();
}, 120_000);
