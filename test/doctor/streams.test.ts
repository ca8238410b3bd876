import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkNamed, examineUrl, findings, playProvider, sendEvents, wholeBody } from '../support/examine.ts';
import { plainUsage } from '../support/answers.ts';
import { localSource } from '../support/model-source.ts';
import type { ReadAnswer } from '../../src/doctor/ask.ts';
import { sanitiseAll } from '../../src/protocol/upstream/words/sanitise.ts';
import { judgeAnswer } from '../../src/doctor/judge-answer.ts';
import { chatFrames, cut, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';

let upstream: ScriptedUpstream;
beforeAll(async () => void (upstream = await startUpstream()));
afterAll(() => upstream.close());

const frames = chatFrames(['Grüße', ' 🌍'], 'stop');
const [role = '', first = '', second = '', finish = '', usage = '', done = ''] = frames;
const good = frames.join('');
const error = { message: 'CUDA out of memory', type: 'server_error', param: null, code: null };
const data = (frame: object): string => `data: ${JSON.stringify(frame)}\n\n`;
const chunk = (delta: object, reason: string | null = null, extra: object = {}): string =>
  data({
    id: 'x',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: reason, ...extra }],
  });

/** Examines the provider with this stream, and names what is found of it. */
async function examineStream(bytes: string | Buffer, upstreamSettings: object = {}) {
  playProvider(upstream, { stream: (response) => sendEvents(response, bytes) });
  return examineUrl(upstream.url, { upstream: upstreamSettings });
}

test('a stream that is compressed as its head says has no finding', async () => {
  const head = { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' };
  playProvider(upstream, { stream: (response) => void response.writeHead(200, head).end(gzipSync(good)) });
  expect(findings(await examineUrl(upstream.url))).toEqual([]);
});

test.each([
  [
    'cut off within its compressed data',
    'gzip',
    gzipSync(good).subarray(0, 40),
    'fault',
    'ends before its compressed data do',
  ],
  [
    'in a coding that is not known',
    'snappy',
    gzipSync(good),
    'fault',
    'the content-encoding of the answer is not known',
  ],
  [
    'compressed without a label',
    'identity',
    gzipSync(good),
    'fault',
    'is compressed, but has no content-encoding',
  ],
])('a stream that is %s is judged so', async (_name, coding, bytes, status, detail) => {
  const head = { 'content-type': 'text/event-stream', 'content-encoding': coding };
  playProvider(upstream, { stream: (response) => void response.writeHead(200, head).end(bytes) });
  const examined = await examineUrl(upstream.url);
  expect(checkNamed(examined, 'chat.stream.undecodable')).toMatchObject({
    status,
    detail: expect.stringContaining(detail),
  });
});

describe('a well-behaved stream has no finding', () => {
  test.each<[string, string | Buffer]>([
    ['as OpenAI sends it', good],
    ['with comments', `: PROCESSING\n\n${good.replaceAll('data:', ': ping\ndata:')}`],
    ['with CRLF', good.replaceAll('\n', '\r\n')],
    ['with CR alone', good.replaceAll('\n', '\r')],
    ['without the blank after data:', good.replaceAll('data: ', 'data:')],
    ['with a byte order mark', `\uFEFF${good}`],
    ['with data in two lines', good.replaceAll('"choices"', '\ndata: "choices"')],
    ['without the last blank line', good.trimEnd()],
    ["with Azure's first chunk", data({ id: '', object: '', created: 0, model: '', choices: [] }) + good],
    [
      'with the usage on the finish chunk',
      role +
        first +
        finish.replace(
          '"choices"',
          `"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5},"choices"`,
        ) +
        done,
    ],
    [
      'with the role in every chunk',
      role + chunk({ role: 'assistant', content: 'Hi' }) + finish + usage + done,
    ],
    [
      'with null contents before the text',
      role + chunk({ content: null, reasoning_content: 'hm' }) + first + finish + usage + done,
    ],
  ])('%s', async (_name, bytes) => {
    const report = await examineStream(bytes);
    expect(findings(report)).toEqual([]);
    expect(report.status).toBe('ok');
  });

  test('whose characters are split between two packets', async () => {
    playProvider(upstream, {
      stream: (response) => {
        const bytes = Buffer.from(good);
        const middle = bytes.indexOf(Buffer.from('🌍')) + 2;
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(bytes.subarray(0, middle));
        setImmediate(() => response.end(bytes.subarray(middle)));
      },
    });
    expect(findings(await examineUrl(upstream.url))).toEqual([]);
  });
});

describe('a fault of a stream is named, with the advice', () => {
  const reported = [
    /an error inside an answer with status 200: server_error, CUDA out of memory$/,
    /log of the server/,
  ] as const;
  test.each<[string, string, string, RegExp, RegExp]>([
    ['an error in the middle', role + first + data({ error }), 'error_in_answer', ...reported],
    ['an error event', `${role}${first}event: error\n${data({ error })}`, 'error_in_answer', ...reported],
    ['a flat error event', `${role}${first}event: error\n${data(error)}`, 'error_in_answer', ...reported],
    ['an error before any text', data({ error }), 'error_in_answer', ...reported],
    ['an error, then [DONE]', role + first + data({ error }) + done, 'error_in_answer', ...reported],
    [
      "llama.cpp's error field",
      `${role}error: ${JSON.stringify(error)}\n\n${done}`,
      'error_in_answer',
      ...reported,
    ],
    [
      "OpenRouter's finish reason error",
      role + first + chunk({ content: '' }, 'error', { error }),
      'error_in_answer',
      ...reported,
    ],
    [
      "an overload, as Anthropic's",
      `${role}event: error\n${data({ type: 'error', error: { type: 'overloaded_error' } })}`,
      'error_in_answer',
      /overloaded_error$/,
      /log of the server/,
    ],
    [
      'an end in the middle of the text',
      role + first,
      'cut_off',
      /without an end marker/,
      /timeouts of the proxies/,
    ],
    [
      '[DONE] without a finish reason',
      role + first + usage + done,
      'missing_finish',
      /no finish reason/,
      /finishReason: optional/,
    ],
    [
      'a line that is not JSON',
      `${role}data: {"choices\n\n${done}`,
      'bad_json',
      /not a JSON object/,
      /makers of the server/,
    ],
    [
      'a finish reason of no table',
      role + first + chunk({}, 'tired') + done,
      'unknown_finish_reason',
      /'tired'/,
      /textgate/,
    ],
    ['a tool call', role + chunk({ tool_calls: [{ index: 0 }] }) + done, 'invalid', /tool call/, /makers/],
    ['an event of over 1 MiB', `data: ${'x'.repeat(1_048_600)}`, 'oversized_event', /1 MiB/, /makers/],
  ])('%s', async (_name, bytes, rule, detail, advice) => {
    const report = await examineStream(bytes);
    expect(findings(report)).toEqual([
      { id: 'chat.stream', status: 'fault' },
      { id: `chat.stream.${rule}`, status: 'fault' },
    ]);
    const found = checkNamed(report, `chat.stream.${rule}`);
    expect(found.detail).toMatch(detail);
    expect(found.advice).toMatch(advice);
    expect(JSON.stringify(report)).not.toContain('Grüße');
  });

  test('a connection that breaks', async () => {
    playProvider(upstream, {
      stream: (response) => {
        sendStream(response, [role, first]);
        setTimeout(() => cut(response, 'rst'), 20);
      },
    });
    const report = await examineUrl(upstream.url);
    expect(checkNamed(report, 'chat.stream.broken').detail).toMatch(/breaks in the middle/);
    expect(report.status).toBe('fault');
  });

  test('an answer that stops and does not end', async () => {
    playProvider(upstream, { stream: (response) => void sendStream(response, [role, first]) });
    const report = await examineUrl(upstream.url, { callMs: 300 });
    expect(checkNamed(report, 'chat.stream.timeout').advice).toMatch(/--timeout/);
  });

  test('a web page under status 200', async () => {
    playProvider(upstream, {
      stream: (response) =>
        void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Bad gateway'),
    });
    const found = checkNamed(await examineUrl(upstream.url), 'chat.stream.wrong_content_type');
    expect([found.status, found.detail]).toEqual(['fault', 'a web page instead of an answer']);
    expect(found.advice).toMatch(/^The list of models is at this URL: check the name of the model/);
  });
});

describe('what the gateway mends is a warning', () => {
  test.each<[string, string, string, RegExp]>([
    ['no [DONE]', role + first + finish + usage, 'missing_done', /without data: \[DONE\]/],
    ['text after [DONE]', good + chunk({ content: 'late' }), 'duplicate_terminal', /events follow/],
    [
      'contents that are lists',
      role + chunk({ content: [{ type: 'text', text: 'Hi' }] }) + finish + usage + done,
      'content_list',
      /list of parts/,
    ],
    ['a ping that is a chunk', `event: ping\ndata: {"id":"x"}\n\n${good}`, 'no_choices', /list of choices/],
    [
      'more reasoning than output',
      role +
        first +
        finish +
        usage.replace('"completion_tokens"', '"reasoning_tokens":9,"completion_tokens"') +
        done,
      'excess_reasoning',
      /more reasoning than output/,
    ],
    ['no role', first + finish + usage + done, 'no_role', /role assistant/],
    [
      'text after the finish reason',
      role + first + chunk({ content: 'a' }, 'stop') + second + finish + usage + done,
      'text_after_finish',
      /first finish reason/,
    ],
    [
      'ids that change',
      role + first.replace('"id":"x"', '"id":"y"') + finish + usage + done,
      'changing_id',
      /2 different ids/,
    ],
  ])('%s', async (_name, bytes, rule, detail) => {
    const report = await examineStream(bytes);
    expect(findings(report)).toEqual([{ id: `chat.stream.${rule}`, status: 'warning' }]);
    const found = checkNamed(report, `chat.stream.${rule}`);
    expect(found.detail).toMatch(detail);
    expect(found.advice).toMatch(/^Nothing to change/);
    expect(report.status).toBe('warning');
  });

  test('events after the end that come in a packet of their own', async () => {
    playProvider(upstream, {
      stream: (response) => {
        sendStream(response, [good]);
        setTimeout(() => response.end(chunk({ content: 'late' })), 20);
      },
    });
    expect(findings(await examineUrl(upstream.url))).toEqual([
      { id: 'chat.stream.duplicate_terminal', status: 'warning' },
    ]);
  });

  test('a stream that stays open after its end', async () => {
    playProvider(upstream, { stream: (response) => void sendStream(response, [good]) });
    const report = await examineUrl(upstream.url);
    expect(findings(report)).toEqual([]);
    expect(checkNamed(report, 'chat.stream').detail).toMatch(/finish reason stop/);
  });

  test('a JSON body instead of a stream', async () => {
    playProvider(upstream, { stream: (response) => sendJson(response, 200, wholeBody()) });
    const report = await examineUrl(upstream.url);
    expect(findings(report)).toEqual([{ id: 'chat.stream.wrong_content_type', status: 'warning' }]);
    expect(checkNamed(report, 'chat.stream.wrong_content_type').detail).toBe(
      'the content type is application/json, not text/event-stream',
    );
  });

  test('a missing finish reason where the config has it optional', async () => {
    const report = await examineStream(role + first + usage + done, { finishReason: 'optional' });
    expect(findings(report)).toEqual([{ id: 'chat.stream.missing_finish', status: 'warning' }]);
    expect(checkNamed(report, 'chat.stream').detail).toMatch(/^no finish reason/);
  });

  test('tokens that are not reported', async () => {
    const report = await examineStream(role + first + finish + done);
    expect(findings(report)).toEqual([{ id: 'chat.usage', status: 'warning' }]);
    expect(checkNamed(report, 'chat.usage').detail).toBe('streamed: the tokens are not reported');
    const given = await examineStream(role + first + finish + done, { streamUsage: 'given' });
    expect(checkNamed(given, 'chat.usage').advice).toMatch(/Set streamUsage: ask/);
  });

  test("token counts that can't be true", async () => {
    const absurd = data({ id: 'x', choices: [], usage: { prompt_tokens: 9_000_000, completion_tokens: 1 } });
    const report = await examineStream(role + first + finish + absurd + done);
    expect(checkNamed(report, 'chat.usage').detail).toMatch(/^streamed: can't be true: 9000000 input tokens/);
  });

  test('text that all arrives at the end of a long stream', async () => {
    const read = {
      kind: 'read',
      contentType: 'text/event-stream',
      status: 200,
      bytes: Buffer.from(good),
      terms: {
        contentType: 'text/event-stream',
        streamAsked: true,
        finishReason: 'required',
        thoughtTag: null,
        sentTokens: 9,
        isFast: true,
        sanitise: sanitiseAll,
      },
      deltas: ['a', 'b', 'c', 'd'],
      ending: { kind: 'finished', reason: 'stop', rawReason: 'stop', usage: plainUsage },
      violations: new Set<never>(),
      implausible: null,
      thoughtChars: 0,
      firstTextMs: 4_900,
      totalMs: 5_000,
    } as const;
    const judge = (changes: Partial<ReadAnswer>): readonly string[] =>
      judgeAnswer('s', { ...read, ...changes }, { dialect: 'chat', source: localSource, hasList: true }).map(
        ({ id }) => id,
      );
    expect(judge({})).toEqual(['s', 's.buffered']);
    expect(judge({ firstTextMs: 100 })).toEqual(['s']);
    expect(judge({ thoughtChars: 10 })).toEqual(['s']);
    // A slow start of a short answer, whose pieces still came one after the other.
    expect(judge({ firstTextMs: 3_034, totalMs: 3_278 })).toEqual(['s']);
    expect(judge({ firstTextMs: 49, totalMs: 50 })).toEqual(['s']);
  });
});
