import { describe, expect, test } from 'vitest';
import { called, openWithLimiters, pass, responseOf } from '../support/limiters-behind-gateway.ts';
import type { LimitersScene } from '../support/limiters-behind-gateway.ts';
import { sendJson } from '../support/scripted-upstream.ts';

const large = { model: 'large' } as const;

/** What the admin API shows of the limits of the only upstream. */
async function limiterOf({ admin }: LimitersScene): Promise<unknown> {
  const { data } = (await admin('/upstreams')) as { data: { limiter: unknown }[] };
  return data[0]?.limiter;
}

const askedOf = ({ first }: LimitersScene): readonly string[] => first.calls.map(({ asked }) => asked);

describe('a model with a limit of its own', () => {
  test('has its second request wait, while those for another model go at once', async () => {
    const scene = await openWithLimiters({ models: { huge: { maxInFlight: 1 } } });
    const { ask, first, waiting, metrics, admin } = scene;
    const answers = [ask('one', large)];
    await called(first, 1);
    answers.push(ask('two', large));
    await waiting(1);
    answers.push(ask('three'), ask('four'));
    await called(first, 3);
    expect(await limiterOf(scene)).toMatchObject({
      max_in_flight: null,
      in_flight: 1,
      waiting: 1,
      paused_ms: 0,
      pauses: [],
      models: [{ model: 'huge', in_flight: 1, max_in_flight: 1, waiting: 1 }],
    });
    expect(((await admin('/in-flight')) as { data: object[] }).data).toMatchObject([
      { waits_for: null },
      { waits_for: 'upstream', waits_at: ['u0'], position: 1 },
      { waits_for: null },
      { waits_for: null },
    ]);
    const shown = await metrics();
    for (const [model, limit] of [
      ['', null],
      ['huge', 1],
    ] as const) {
      const labels = `{upstream="u0",model="${model}"}`;
      expect(shown).toContain(`textgate_upstream_in_flight${labels} 1`);
      expect(shown).toContain(`textgate_upstream_waiting${labels} 1`);
      expect(shown.includes(`textgate_upstream_in_flight_limit${labels}`)).toBe(limit !== null);
    }
    // Models without limits have no series of their own.
    expect(shown).not.toContain('model="tiny"} 1\ntextgate_upstream_in_flight');
    first.calls[0]?.say();
    await called(first, 4);
    expect(new Set(askedOf(scene).slice(1, 3))).toEqual(new Set(['three', 'four']));
    expect(askedOf(scene)[3]).toBe('two');
    for (const { say } of first.calls.slice(1)) say();
    await Promise.all(answers.map(({ ended }) => ended));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const counted = await metrics();
    for (const model of ['', 'huge'])
      expect(counted).toContain(`textgate_upstream_wait_seconds_count{upstream="u0",model="${model}"} 2`);
  });

  test('is limited by those of its upstream, too', async () => {
    const scene = await openWithLimiters({ maxInFlight: 2, models: { huge: { maxInFlight: 1 } } });
    const { ask, first, waiting } = scene;
    const answers = [ask('one'), ask('two')];
    await called(first, 2);
    for (const question of ['three', 'four']) answers.push(ask(question, large));
    answers.push(ask('five'));
    await waiting(3);
    first.calls[0]?.say();
    first.calls[1]?.say();
    await called(first, 4);
    expect(new Set(askedOf(scene).slice(2))).toEqual(new Set(['three', 'five']));
    expect(await limiterOf(scene)).toMatchObject({
      in_flight: 2,
      waiting: 1,
      models: [{ in_flight: 1, waiting: 1 }],
    });
    for (const { say } of first.calls.slice(2)) say();
    await called(first, 5);
    first.calls[4]?.say();
    await Promise.all(answers.map(({ ended }) => ended));
  });

  test('refuses by its own queue, and the metrics say by which', async () => {
    const { ask, first, waiting, metrics } = await openWithLimiters({
      models: { huge: { maxInFlight: 1, queue: 1, queueWait: '5s' } },
    });
    const running = ask('one', large);
    await called(first, 1);
    const next = ask('two', large);
    await waiting(1);
    const refused = ask('three', large);
    await refused.ended;
    expect([refused.status, JSON.parse(refused.text)]).toMatchObject([
      429,
      { error: { code: 'upstream_busy', limit: { source: 'upstream', kind: 'queue', waiting: 1 } } },
    ]);
    const shown = await metrics();
    for (const model of ['', 'huge'])
      expect(shown).toContain(
        `textgate_upstream_queue_refusals_total{upstream="u0",model="${model}",reason="full"} 1`,
      );
    first.calls[0]?.say();
    await called(first, 2);
    first.calls[1]?.say();
    await Promise.all([running.ended, next.ended]);
  });

  test('is learned by its own answers alone', async () => {
    const scene = await openWithLimiters({
      learnLimits: true,
      models: { huge: { learnLimits: true, queueWait: '5m' } },
    });
    const { ask, first, waiting } = scene;
    const answers = [ask('one', large)];
    await called(first, 1);
    sendJson(responseOf(first, 0), 429, '{}', {
      'retry-after': '1',
      'x-ratelimit-limit-requests': '10',
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-requests': '60s',
    });
    await waiting(1);
    answers.push(ask('two'));
    await called(first, 2);
    expect(await limiterOf(scene)).toMatchObject({
      learned: [],
      models: [{ model: 'huge', learned: [{ name: 'requests', limit: 10, left: 0 }], waiting: 1 }],
      pauses: [{ model: 'huge', paused_ms: 1_000 }],
    });
    await pass(scene.clock, 10_000);
    await called(first, 3);
    for (const { say } of first.calls.slice(1)) say();
    await Promise.all(answers.map(({ ended }) => ended));
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  });

  test('gets it and loses it with a reload, while requests wait', async () => {
    const scene = await openWithLimiters({ models: { huge: { maxInFlight: 1 } } });
    const { ask, first, waiting, reload } = scene;
    const answers = [ask('one', large)];
    await called(first, 1);
    answers.push(ask('two', large), ask('three', large));
    await waiting(2);
    reload({ models: { huge: { maxInFlight: 2 } } });
    await called(first, 2);
    reload({ maxInFlight: 2 });
    expect(await limiterOf(scene)).toMatchObject({ in_flight: 2, waiting: 1, models: [] });
    reload({ maxInFlight: 4, models: { huge: { maxInFlight: 1 } } });
    await called(first, 3);
    answers.push(ask('four', large));
    await waiting(1);
    answers.push(ask('five'));
    await called(first, 4);
    reload({});
    await called(first, 5);
    for (const { say } of first.calls) say();
    await Promise.all(answers.map(({ ended }) => ended));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  });
});

describe('a 429 with retry-after at an upstream with limits', () => {
  test('holds the requests of its model alone: those of others go, from behind it in the queue, too', async () => {
    const scene = await openWithLimiters({ maxInFlight: 1 });
    const { ask, first, waiting } = scene;
    const answers = [ask('one', large)];
    await called(first, 1);
    answers.push(ask('two', large));
    await waiting(1);
    answers.push(ask('three'));
    await waiting(2);
    sendJson(responseOf(first, 0), 429, '{}', { 'retry-after': '20' });
    await called(first, 2);
    expect(askedOf(scene)).toEqual(['one', 'three']);
    expect(await limiterOf(scene)).toMatchObject({
      paused_ms: 0,
      pauses: [{ model: 'huge', paused_ms: 20_000 }],
      waiting: 2,
    });
    first.calls[1]?.say();
    await answers[2]?.ended;
    answers.push(ask('four'));
    await called(first, 3);
    first.calls[2]?.say();
    await answers[3]?.ended;
    await pass(scene.clock, 19_000);
    expect(first.calls).toHaveLength(3);
    await pass(scene.clock, 1_000);
    for (const count of [4, 5]) {
      await called(first, count);
      first.calls[count - 1]?.say();
    }
    await Promise.all(answers.map(({ ended }) => ended));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  });

  test('does so where another model alone has limits: the paused one is as one without any', async () => {
    const scene = await openWithLimiters({ models: { huge: { maxInFlight: 1 } } });
    const { ask, first } = scene;
    const answer = ask('one');
    await called(first, 1);
    sendJson(responseOf(first, 0), 429, '{}', { 'retry-after': '20' });
    await answer.ended;
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '20']);
    const other = ask('two', large);
    await called(first, 2);
    first.calls[1]?.say();
    await other.ended;
    expect(other.status).toBe(200);
  });
});
