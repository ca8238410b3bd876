import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { askAdmin } from '../support/admin-client.ts';
import { readStream } from '../support/client-answer.ts';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { readLive } from '../support/live-answer.ts';
import type { LiveAnswer } from '../support/live-answer.ts';
import { chatFrames, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from '../support/test-gateway.ts';

const frames = chatFrames(['one ', 'two']);
const [opening = '', ...rest] = frames;
const thought = 'data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}\n\n';
const emptyDelta = 'data: {"choices":[{"index":0,"delta":{"content":""}}]}\n\n';
const chat = { model: 'small', stream: true, messages: [{ role: 'user', content: 'x' }] };

/** The calls of an upstream that has sent its head. */
interface HeldCall {
  readonly say: (...texts: string[]) => void;
  readonly end: () => void;
}

let clock: FakeClock;
let upstreams: readonly ScriptedUpstream[];
let gateway: TestGateway;
let held: HeldCall[][];

beforeEach(async () => {
  clock = createFakeClock();
  upstreams = await Promise.all([startUpstream(), startUpstream()]);
  held = [[], []];
  for (const [at, upstream] of upstreams.entries())
    upstream.play((response) => {
      sendStream(response, []);
      response.flushHeaders();
      held[at]?.push({
        say: (...texts) => void response.write(texts.join('')),
        end: () => void response.end(),
      });
    });
});
afterEach(async () => {
  await gateway.close();
  await Promise.all(upstreams.map((upstream) => upstream.close()));
});

async function open(
  {
    firstText,
    retryWithin,
    limits,
    limited = 1,
    ...options
  }: Omit<TestGatewayOptions, 'limits'> & {
    firstText?: string;
    retryWithin?: string;
    limits?: { maxInFlight: number };
    /** Which upstream has the limits. */
    limited?: number;
  },
  routes = 2,
): Promise<void> {
  const timeouts = { firstByte: '120s', idle: '60s', total: '10m', ...(firstText && { firstText }) };
  const named = upstreams
    .slice(0, routes)
    .map(
      ({ url }, at) =>
        [String.fromCodePoint(97 + at), { url, timeouts, ...(at === limited && limits) }] as const,
    );
  gateway = await startGateway({
    clock,
    limits: { concurrency: 100 },
    upstreams: Object.fromEntries(named),
    routes: named.map(([upstream]) =>
      Object.assign({ upstream, model: 'm' }, retryWithin && { retryWithin }),
    ),
    price: { input: '1.00', output: '2.00' },
    ...options,
  });
}

/** Sends a request, and waits until the first upstream has it and it is recorded. */
async function ask(body: object = chat): Promise<LiveAnswer> {
  const answer = readLive(gateway.post('/v1/chat/completions', body));
  await eventually('the first upstream is asked', () => held[0]?.length === 1);
  await gateway.recorded();
  await heads();
  return answer;
}

/** Lets what the upstreams have sent arrive: it was written before this request. */
async function heads(): Promise<void> {
  for (let time = 0; time < 3; time++) await fetch(`${gateway.url}/healthz`);
}

const call = (upstream: number): HeldCall => {
  const found = held[upstream]?.at(-1);
  if (found === undefined) throw new Error(`upstream ${upstream} was not called`);
  return found;
};
const asked = (): number[] => upstreams.map(({ seen }) => seen.length);
const recordOf = async () => (await askAdmin(gateway, 'GET', '/records?limit=1')).body.data[0];
const attemptsOf = (record: { attempts: Record<string, string>[] }): string[] =>
  record.attempts.map(({ upstream, result }) => `${upstream} ${result}`);
const metric = async (name: string): Promise<number> => {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(name))
      ?.split(' ')
      .at(-1),
  );
};

describe('timeouts.firstText', () => {
  test('gives an upstream up that sends everything but text, and the next one answers', async () => {
    await open({ firstText: '5s' });
    const answer = await ask();
    call(0).say(': still here\n\n', opening, emptyDelta);
    await heads();
    clock.advance(4_999);
    call(0).say(emptyDelta, thought);
    await heads();
    expect(asked()).toEqual([1, 0]);
    clock.advance(1);
    await eventually('the second upstream is asked', () => held[1]?.length === 1);
    call(1).say(...frames);
    call(1).end();
    await answer.ended;
    expect(readStream('chat', answer.text)).toMatchObject({ ending: 'stop', text: 'one two' });
    const record = await recordOf();
    expect(attemptsOf(record)).toEqual(['a timeout', 'b ok']);
    expect(record.attempts[0].cause).toContain('no text in time');
    await eventually('the first call is aborted', () => upstreams[0]?.aborted === 1);
    expect(await metric('textgate_upstream_attempts_total{upstream="a",result="timeout"}')).toBe(1);
  });

  test('is an error with one route, charged nothing; a whole answer of one route has no such limit', async () => {
    await open({ firstText: '5s' }, 1);
    const answer = await ask();
    call(0).say(opening);
    await heads();
    clock.advance(5_000);
    await answer.ended;
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([504, 'upstream_timeout']);
    expect(await recordOf()).toMatchObject({ outcome: 'first_byte_timeout', charge: '0.00' });
    const whole = readLive(gateway.post('/v1/chat/completions', { ...chat, stream: false }));
    await eventually('the upstream is asked', () => held[0]?.length === 2);
    await gateway.recorded();
    clock.advance(30_000);
    await heads();
    call(0).say(...frames);
    call(0).end();
    await whole.ended;
    expect(whole.status).toBe(200);
  });

  test('is put off by each thought of a model that thinks, and by nothing else', async () => {
    await open({ firstText: '5s', settings: { thinks: true } });
    const answer = await ask();
    call(0).say(opening);
    for (let time = 0; time < 4; time++) {
      clock.advance(4_000);
      call(0).say(thought);
      await heads();
    }
    expect(asked()).toEqual([1, 0]);
    clock.advance(4_000);
    call(0).say(emptyDelta);
    await heads();
    clock.advance(1_000);
    await eventually('the second upstream is asked', () => held[1]?.length === 1);
    call(1).say(...frames);
    call(1).end();
    await answer.ended;
    expect(attemptsOf(await recordOf())).toEqual(['a timeout', 'b ok']);
  });

  test('is over with the first text', async () => {
    await open({ firstText: '5s' });
    const answer = await ask();
    call(0).say(opening, rest[0] ?? '');
    await eventually('text comes', () => answer.text.includes('one '));
    clock.advance(10_000);
    call(0).say(...rest.slice(1));
    call(0).end();
    await answer.ended;
    expect(readStream('chat', answer.text)).toMatchObject({ ending: 'stop', text: 'one two' });
    expect(asked()).toEqual([1, 0]);
  });
});

describe('retryWithin', () => {
  const failing = 'data: {"error":{"message":"no"}}\n\n';

  test('lets another attempt follow one that failed soon', async () => {
    await open({ retryWithin: '5s' });
    const answer = await ask();
    clock.advance(5_000);
    call(0).say(failing);
    await eventually('the second upstream is asked', () => held[1]?.length === 1);
    call(1).say(...frames);
    call(1).end();
    await answer.ended;
    expect(attemptsOf(await recordOf())).toEqual(['a error', 'b ok']);
  });

  test('lets none follow one that failed later: the client gets its error', async () => {
    await open({ retryWithin: '5s' });
    const answer = await ask();
    clock.advance(5_001);
    call(0).say(failing);
    await answer.ended;
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([502, 'upstream_error']);
    expect(asked()).toEqual([1, 0]);
    expect(attemptsOf(await recordOf())).toEqual(['a error']);
  });
});

test('a client that leaves while its request waits for the next upstream pays nothing for what the failed one thought', async () => {
  await open({ limits: { maxInFlight: 1 } });
  const first = await ask();
  call(0).end();
  await eventually('the only permit is taken', () => held[1]?.length === 1);
  // The newest record is the one that is read.
  clock.advance(1);
  const left = new AbortController();
  const gone = gateway.post('/v1/chat/completions', chat, { signal: left.signal }).catch(() => null);
  await eventually('the first upstream is asked again', () => held[0]?.length === 2);
  await gateway.recorded();
  call(0).say(thought);
  call(0).end();
  await eventually(
    'the request waits',
    async () => (await metric('textgate_upstream_waiting{upstream="b",model=""}')) === 1,
  );
  left.abort();
  await gone;
  await eventually('the request is settled', async () => (await recordOf())?.outcome === 'client_closed');
  const record = await recordOf();
  call(1).say(...frames);
  call(1).end();
  await first.ended;
  expect(record).toMatchObject({ upstream: 'a', charge: '0.00' });
});

describe('a second request beside a slow one', () => {
  const hedge = { after: '2s', budget: '100%' };
  const openBoth = async (): Promise<LiveAnswer> => {
    const answer = await ask();
    call(0).say(opening);
    clock.advance(1_999);
    await heads();
    expect(asked()).toEqual([1, 0]);
    clock.advance(1);
    await eventually('the second upstream is asked', () => held[1]?.length === 1);
    return answer;
  };

  test('answers if its text is first: the first one is stopped, and only the second one is paid', async () => {
    await open({ settings: { hedge } });
    const answer = await openBoth();
    expect((await askAdmin(gateway, 'GET', '/in-flight')).body.data[0].upstream).toBe('a');
    call(1).say(...frames);
    call(1).end();
    await answer.ended;
    expect(readStream('chat', answer.text)).toMatchObject({ ending: 'stop', text: 'one two' });
    await eventually('the first call is aborted', () => upstreams[0]?.aborted === 1);
    const record = await recordOf();
    expect(attemptsOf(record)).toEqual(['a hedge_lost', 'b ok']);
    expect(record).toMatchObject({ upstream: 'b', charge: '0.000025' });
    expect(record.attempts[1].started_ms).toBe(2_000);
    expect(await metric('textgate_hedges_total{model="small",result="won"}')).toBe(1);
    expect(await metric('textgate_upstream_attempts_total{upstream="a",result="hedge_lost"}')).toBe(1);
    expect(await metric('textgate_upstream_state{upstream="a"}')).toBe(2);
  });

  test('is stopped if the text of the first one comes before its own', async () => {
    await open({ settings: { hedge } });
    const answer = await openBoth();
    call(0).say(...rest);
    call(0).end();
    await answer.ended;
    await eventually('the second call is aborted', () => upstreams[1]?.aborted === 1);
    const record = await recordOf();
    expect(attemptsOf(record)).toEqual(['a ok', 'b hedge_lost']);
    expect(record).toMatchObject({ upstream: 'a', charge: '0.000025' });
    expect(await metric('textgate_hedges_total{model="small",result="lost"}')).toBe(1);
  });

  test('is not charged for what the first one thought, where its provider counts nothing', async () => {
    await open({ settings: { hedge } });
    const answer = await ask();
    call(0).say(thought.replace('hm', 'a long thought '.repeat(100)));
    await heads();
    clock.advance(2_000);
    await eventually('the second upstream is asked', () => held[1]?.length === 1);
    call(1).say(...frames.filter((frame) => !frame.includes('usage')));
    call(1).end();
    await answer.ended;
    const { usage, usage_source: source } = await recordOf();
    expect(source).toBe('counted');
    expect(usage.output_tokens).toBeLessThan(10);
  });

  test('goes on if the first one fails', async () => {
    await open({ settings: { hedge } });
    const answer = await openBoth();
    call(0).end();
    await heads();
    call(1).say(...frames);
    call(1).end();
    await answer.ended;
    expect(readStream('chat', answer.text)).toMatchObject({ ending: 'stop', text: 'one two' });
    expect(attemptsOf(await recordOf())).toEqual(['a truncated', 'b ok']);
  });

  test('is no end of the request if its own provider refuses it: the first one may still answer', async () => {
    upstreams[1]?.play((response) => sendJson(response, 400, '{"error":{"message":"too long for me"}}'));
    await open({ settings: { hedge } });
    const answer = await ask();
    clock.advance(2_000);
    await eventually('the second upstream has refused', () => asked()[1] === 1);
    await heads();
    expect(answer.text).toBe('');
    call(0).say(...frames);
    call(0).end();
    await answer.ended;
    expect(readStream('chat', answer.text)).toMatchObject({ ending: 'stop', text: 'one two' });
    const record = await recordOf();
    expect(attemptsOf(record)).toEqual(['a ok', 'b refused']);
    expect(record).toMatchObject({ upstream: 'a', outcome: 'completed', charge: '0.000025' });
    expect(await metric('textgate_hedges_total{model="small",result="lost"}')).toBe(1);
  });

  test.for([
    ['before', [1, 0]],
    ['after', [0, 1]],
  ] as const)(
    'fails %s the first one is told when to come back: the request waits for that, as without a second one',
    async ([, turns]) => {
      const responses: ServerResponse[] = [];
      for (const upstream of upstreams)
        upstream.play((response) => {
          responses.push(response);
        });
      await open({ settings: { hedge }, limits: { maxInFlight: 1 }, limited: 0 });
      const answer = readLive(gateway.post('/v1/chat/completions', chat));
      await eventually('the first upstream is asked', () => responses.length === 1);
      await gateway.recorded();
      clock.advance(2_000);
      await eventually('the second upstream is asked', () => responses.length === 2);
      for (const at of turns) {
        const response = responses[at];
        if (response === undefined) throw new Error('not asked');
        if (at === 0) sendJson(response, 429, '{}', { 'retry-after': '5' });
        else sendJson(response, 500, '{}');
        await heads();
      }
      await heads();
      expect(responses).toHaveLength(2);
      clock.advance(5_000);
      await eventually('the first upstream is asked again', () => asked()[0] === 2);
      sendStream(responses[2] as ServerResponse, frames).end();
      await answer.ended;
      expect(readStream('chat', answer.text)).toMatchObject({ ending: 'stop', text: 'one two' });
      expect(attemptsOf(await recordOf())).toEqual(['a rate_limited', 'b error', 'a ok']);
    },
  );

  test('ends with its client, as the first one does: nothing is charged', async () => {
    await open({ settings: { hedge } });
    const left = new AbortController();
    const gone = gateway.post('/v1/chat/completions', chat, { signal: left.signal }).catch(() => null);
    await eventually('the first upstream is asked', () => held[0]?.length === 1);
    await gateway.recorded();
    clock.advance(2_000);
    await eventually('the second upstream is asked', () => held[1]?.length === 1);
    left.abort();
    await gone;
    await eventually('both calls are aborted', () => upstreams.every(({ aborted }) => aborted === 1));
    await eventually('the request is settled', async () => (await recordOf())?.outcome === 'client_closed');
    const record = await recordOf();
    expect(attemptsOf(record)).toEqual(['a interrupted', 'b interrupted']);
    expect(record.charge).toBe('0.00');
    expect(await metric('textgate_hedges_total{model="small",result="failed"}')).toBe(1);
  });

  test.for([
    ['nothing', false, '0.00'],
    ['what the second one thought', true, '0.000007'],
  ] as const)(
    'is the one that counts once the first one has failed: a client that leaves pays %s',
    async ([, thinks, charge]) => {
      await open({ settings: { hedge } });
      const left = new AbortController();
      const gone = gateway.post('/v1/chat/completions', chat, { signal: left.signal }).catch(() => null);
      await eventually('the first upstream is asked', () => held[0]?.length === 1);
      await gateway.recorded();
      call(0).say(thought.replace('hm', 'a long thought '.repeat(100)));
      await heads();
      clock.advance(2_000);
      await eventually('the second upstream is asked', () => held[1]?.length === 1);
      call(0).end();
      await heads();
      if (thinks) call(1).say(thought);
      await heads();
      left.abort();
      await gone;
      await eventually('the request is settled', async () => (await recordOf())?.outcome === 'client_closed');
      const record = await recordOf();
      expect(attemptsOf(record)).toEqual(['a truncated', 'b interrupted']);
      expect(record).toMatchObject({ upstream: 'b', charge });
    },
  );

  test('is not sent without budget for it', async () => {
    await open({ settings: { hedge: { ...hedge, budget: '50%' } } });
    const answer = await ask();
    clock.advance(2_000);
    await heads();
    expect(asked()).toEqual([1, 0]);
    call(0).say(...frames);
    call(0).end();
    await answer.ended;
    expect(attemptsOf(await recordOf())).toEqual(['a ok']);
    expect(await metric('textgate_hedges_total{model="small",result="refused"}')).toBe(1);
  });

  test('acquires a permit of an upstream with limits only where one is free at once, and releases it', async () => {
    await open({ settings: { hedge }, limits: { maxInFlight: 1 } });
    const first = await openBoth();
    const askAnother = async (number: number): Promise<LiveAnswer> => {
      const answer = readLive(gateway.post('/v1/chat/completions', chat));
      await eventually('the first upstream is asked', () => held[0]?.length === number);
      await gateway.recorded();
      clock.advance(2_000);
      await heads();
      return answer;
    };
    const finish = async (number: number, answer: LiveAnswer): Promise<void> => {
      held[0]?.[number - 1]?.say(...frames);
      held[0]?.[number - 1]?.end();
      await answer.ended;
    };
    const second = await askAnother(2);
    expect(asked()).toEqual([2, 1]);
    await finish(2, second);
    expect(attemptsOf(await recordOf())).toEqual(['a ok']);
    await finish(1, first);
    await eventually('the second call is aborted', () => upstreams[1]?.aborted === 1);
    const third = await askAnother(3);
    await eventually('the permit is taken again', () => held[1]?.length === 2);
    await finish(3, third);
    expect(attemptsOf(await recordOf())).toEqual(['a ok', 'b hedge_lost']);
  });
});
