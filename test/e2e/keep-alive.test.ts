import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { readLive } from '../support/live-answer.ts';
import { chatFrames, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';

const comment = ': keep-alive\n';
const silenceMs = 15_000;
const [opening = '', ...rest] = chatFrames(['one ', 'two']);
const chat = { model: 'small', stream: true, messages: [{ role: 'user', content: 'x' }] };
const responses = { model: 'small', stream: true, input: 'x' };
const endpoints = [
  ['/v1/chat/completions', chat],
  ['/v1/responses', responses],
] as const;

let clock: FakeClock;
let upstream: ScriptedUpstream;
let gateway: TestGateway;
/** The upstream's responses, one for each call. */
let calls: { readonly say: (frame: string) => void; readonly end: () => void }[];

beforeEach(async () => {
  clock = createFakeClock();
  upstream = await startUpstream();
  const timeouts = { firstByte: '120s', idle: '60s', total: '10m' };
  gateway = await startGateway({ upstreamUrl: upstream.url, clock, timeouts });
  calls = [];
  upstream.play((response) => {
    sendStream(response, []);
    response.flushHeaders();
    calls.push({ say: (frame) => void response.write(frame), end: () => void response.end() });
  });
});

afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

describe.each(endpoints)('a stream on %s whose text is slow to come', (path, body) => {
  const ask = async () => {
    const expected = calls.length + 1;
    const answer = readLive(gateway.post(path, body));
    await eventually('the upstream is asked', () => calls.length === expected);
    await gateway.recorded();
    await otherTraffic();
    return answer;
  };

  test('is kept alive by comments of one line break, and ends complete', async () => {
    const answer = await ask();
    clock.advance(silenceMs - 1);
    await otherTraffic();
    expect(answer.text).toBe('');
    clock.advance(1);
    await eventually('a comment comes', () => answer.text === comment);
    clock.advance(silenceMs);
    await eventually('another one comes', () => answer.text === comment + comment);
    for (const frame of [opening, ...rest]) calls.at(-1)?.say(frame);
    calls.at(-1)?.end();
    await answer.ended;
    expect(answer.status).toBe(200);
    expect(answer.text.slice(2 * comment.length)).toMatch(/^(data|event): /);
    expect(answer.text).toMatch(/data: \[DONE\]\n\n$|event: response\.completed\n.*\n\n$/);
  });

  test('is kept alive while the model reasons, although the upstream is not silent', async () => {
    const answer = await ask();
    const thought = 'data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}\n\n';
    for (let passed = 0; passed < 4; passed++) {
      calls.at(-1)?.say(thought);
      await otherTraffic();
      clock.advance(silenceMs);
    }
    await eventually('four comments have come', () => answer.text === comment.repeat(4));
    for (const frame of [opening, ...rest]) calls.at(-1)?.say(frame);
    calls.at(-1)?.end();
    await answer.ended;
    expect(answer.text).not.toContain('hm');
    expect(answer.text).toMatch(/\[DONE\]|response\.completed/);
  });

  test('does not count its own comments as upstream activity: the idle timeout still applies', async () => {
    const answer = await ask();
    for (const frame of [opening, ...rest.slice(0, 1)]) calls.at(-1)?.say(frame);
    await eventually('text comes', () => answer.text.includes('one '));
    for (let passed = 0; passed < 4; passed++) {
      clock.advance(silenceMs);
      await otherTraffic();
    }
    await answer.ended;
    expect(answer.text).toContain(comment + comment);
    expect(answer.text).toContain('"code":"upstream_timeout"');
    expect(answer.text).not.toMatch(/\[DONE\]|response\.completed/);
  });

  test('fails inside the stream after a comment was sent, and with a status before', async () => {
    const answer = await ask();
    clock.advance(silenceMs);
    await eventually('a comment comes', () => answer.text === comment);
    calls.at(-1)?.say('data: {"error":{"message":"boom"}}\n\n');
    await answer.ended;
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('"code":"upstream_error"');
    const second = await ask();
    calls.at(-1)?.say('data: {"error":{"message":"boom"}}\n\n');
    await second.ended;
    expect(second.status).toBe(502);
  });
});

test('a whole answer contains no comments, even after a long time', async () => {
  const answer = readLive(gateway.post('/v1/chat/completions', { ...chat, stream: false }));
  await eventually('the upstream is asked', () => calls.length === 1);
  await gateway.recorded();
  await otherTraffic();
  clock.advance(4 * silenceMs);
  for (const frame of [opening, ...rest]) calls.at(-1)?.say(frame);
  calls.at(-1)?.end();
  await answer.ended;
  expect(JSON.parse(answer.text)).toMatchObject({ choices: [{ message: { content: 'one two' } }] });
});

test('the gateway sends no comment after the end of a stream', async () => {
  const answer = readLive(gateway.post('/v1/chat/completions', chat));
  await eventually('the upstream is asked', () => calls.length === 1);
  for (const frame of [opening, ...rest]) calls.at(-1)?.say(frame);
  calls.at(-1)?.end();
  await answer.ended;
  const before = clock.scheduled;
  clock.advance(4 * silenceMs);
  expect(clock.scheduled).toBeLessThanOrEqual(before);
  expect(answer.text).not.toContain(comment);
});

/** Makes several other round trips, after which everything sent before them has been read. */
async function otherTraffic(): Promise<void> {
  for (let count = 0; count < 3; count++) await fetch(`${gateway.adminUrl}/healthz`);
}
