import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { openStage } from '../support/stage.ts';
import { eventually } from '../support/eventually.ts';
import { chatFrames, cut, sendJson, sendStream, startUpstream } from '../support/scripted-upstream.ts';
import { startGateway } from '../support/test-gateway.ts';

const texts = ['one ', 'two ', 'three ', 'four'];
const frames = chatFrames(texts);
/** The frame with the finish reason: from here on the answer is complete, even without its last frames. */
const finishIndex = frames.length - 2;
const messages = [{ role: 'user' as const, content: 'count' }];

const { upstream, gateway } = await openStage();

/** Lets the upstream send its first `count` frames, each in its own packet, and then disconnect. */
function dieAfter(count: number, how: 'fin' | 'rst'): void {
  upstream.play(async (response) => {
    sendStream(response, []);
    for (const frame of frames.slice(0, count)) {
      await new Promise<void>((resolve) => response.write(frame, () => resolve()));
    }
    cut(response, how);
  });
}

const cuts = (['fin', 'rst'] as const).flatMap((how) =>
  Array.from({ length: finishIndex }, (_, count) => [count, how] as const),
);

describe.each(cuts)('an upstream that disconnects after %i events, by %s', (count, how) => {
  test('does not end a chat stream with [DONE]: the client library raises an error', async () => {
    dieAfter(count, how);
    await expect(
      (async () =>
        Array.fromAsync(
          await gateway.client.chat.completions.create({ model: 'small', messages, stream: true }),
        ))(),
    ).rejects.toThrow(/provider|terminated/);
    const raw = await readAll('/v1/chat/completions', { model: 'small', messages, stream: true });
    expect(raw.text).not.toContain('[DONE]');
    expect(raw.text).not.toContain('"finish_reason":"stop"');
    expect(raw.text).toMatch(/"code":"upstream_(truncated|unavailable)"/);
    expect(raw.whole).toBe(raw.status !== 200);
  });

  test('does not end a response stream with response.completed: the client library raises an error', async () => {
    dieAfter(count, how);
    await expect(
      (async () =>
        Array.fromAsync(
          await gateway.client.responses.create({ model: 'small', input: 'count', stream: true }),
        ))(),
    ).rejects.toThrow(/provider/);
    const raw = await readAll('/v1/responses', { model: 'small', input: 'count', stream: true });
    expect(raw.text).not.toContain('response.completed');
    expect(raw.text).toMatch(/"code":"upstream_(truncated|unavailable)"/);
    const streamed = /event: error\n.*\n\nevent: response.failed\n.*\n\n$/;
    expect(raw.text).toMatch(raw.status === 200 ? streamed : /^\{"error":\{/);
  });
});

describe('an answer without its last frames', () => {
  test('is complete after a finish reason, even without [DONE]', async () => {
    upstream.play((response) => sendStream(response, frames.slice(0, finishIndex)).end() && undefined);
    const raw = await readAll('/v1/chat/completions', { model: 'small', messages, stream: true });
    expect(raw.text).toContain('one ');
    expect(raw.text).toMatch(/data: \[DONE\]\n\n$/);
    expect(raw.whole).toBe(true);
  });

  test('is incomplete after [DONE] alone: the gateway never invents a finish reason', async () => {
    upstream.play(
      (response) => sendStream(response, [...frames.slice(0, 3), 'data: [DONE]\n\n']).end() && undefined,
    );
    const raw = await readAll('/v1/chat/completions', { model: 'small', messages, stream: true });
    expect(raw.text).toContain('"code":"upstream_truncated"');
    expect(raw.text).not.toContain('[DONE]');
  });
});

describe('a failure before the first text', () => {
  test.each([
    [400, '{"error":{"message":"no"}}', 400, 'invalid_value', false],
    [400, '{"error":{"code":"context_length_exceeded"}}', 400, 'context_length_exceeded', false],
    [401, '{"error":{"message":"sk-upstream-secret is wrong"}}', 502, 'upstream_auth', false],
    [404, 'no such page at http://10.1.2.3', 502, 'upstream_error', false],
    [404, 'no such model at http://10.1.2.3', 404, 'model_not_found', false],
    [429, '{}', 429, 'upstream_rate_limited', true],
    [500, '<html>', 502, 'upstream_error', false],
    [503, '', 503, 'overloaded', true],
  ])(
    'status %i with %s becomes %i %s in all four forms, without quoting the upstream',
    async (status, body, ours, code, waits) => {
      // A gateway for this test alone, because it pauses an upstream that asks for it.
      const own = await startGateway({ upstreamUrl: upstream.url });
      upstream.play((response) => sendJson(response, status, body, { 'retry-after': '7' }));
      for (const stream of [false, true]) {
        for (const [path, text] of [
          ['/v1/chat/completions', { messages }],
          ['/v1/responses', { input: 'x' }],
        ] as const) {
          const response = await own.post(path, { model: 'small', stream, ...text });
          expect(response.status).toBe(ours);
          const answer = await response.text();
          expect(JSON.parse(answer)).toMatchObject({ error: { code, param: null } });
          expect(answer).not.toMatch(/sk-upstream|10\.1\.2\.3|<html>/);
          expect(response.headers.get('retry-after')).toBe(waits ? '7' : null);
        }
      }
      await own.close();
    },
  );

  test.each([
    [
      'an error inside a stream',
      'text/event-stream',
      'data: {"error":{"message":"boom"}}\n\n',
      'upstream_error',
    ],
    ['an error event', 'text/event-stream', 'event: error\ndata: {"message":"boom"}\n\n', 'upstream_error'],
    ['an error body with status 200', 'application/json', '{"error":{"message":"boom"}}', 'upstream_error'],
    ['a web page', 'text/html', '<html>', 'upstream_invalid'],
    ['broken JSON in a stream', 'text/event-stream', 'data: {"choices\n\n', 'upstream_invalid'],
    ['broken JSON in a body', 'application/json', '{"choices":nul}', 'upstream_invalid'],
    ['JSON that is cut off in a body', 'application/json', '{"choices', 'upstream_truncated'],
    ['an empty body', 'application/json', '', 'upstream_invalid'],
  ])('%s becomes a 502', async (_name, contentType, body, code) => {
    upstream.play((response) => void response.writeHead(200, { 'content-type': contentType }).end(body));
    for (const stream of [false, true]) {
      const response = await gateway.post('/v1/chat/completions', { model: 'small', messages, stream });
      expect(response.status).toBe(502);
      expect(await response.json()).toMatchObject({ error: { code } });
    }
  });

  test('an unreachable upstream becomes a 502', async () => {
    const gone = await startUpstream();
    const other = await startGateway({ upstreamUrl: gone.url });
    await gone.close();
    const response = await other.post('/v1/chat/completions', { model: 'small', messages });
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({ error: { code: 'upstream_unavailable' } });
    await other.close();
  });
});

describe('an upstream that streams when asked for a whole answer, or the reverse', () => {
  test('serves a streaming client from a whole body', async () => {
    upstream.play((response) =>
      sendJson(
        response,
        200,
        '\n\n{"choices":[{"index":0,"message":{"content":"whole"},"finish_reason":"stop"}]}',
      ),
    );
    const raw = await readAll('/v1/chat/completions', { model: 'small', messages, stream: true });
    expect(raw.text).toContain('"content":"whole"');
    expect(raw.text).toMatch(/data: \[DONE\]\n\n$/);
  });

  test('serves a client without streaming from a stream', async () => {
    upstream.play((response) => sendStream(response, frames).end() && undefined);
    const completion = await gateway.client.chat.completions.create({ model: 'small', messages });
    expect(completion.choices[0]?.message.content).toBe(texts.join(''));
    expect(completion.usage?.total_tokens).toBe(18);
  });
});

describe('a client that disconnects', () => {
  test.each(['/v1/chat/completions', '/v1/responses'])('aborts its upstream call on %s', async (path) => {
    upstream.play((response) => void sendStream(response, frames.slice(0, 3)));
    const abortedBefore = upstream.aborted;
    const leaving = new AbortController();
    const body = {
      model: 'small',
      stream: true,
      ...(path.endsWith('responses') ? { input: 'x' } : { messages }),
    };
    const response = await gateway.post(path, body, { signal: leaving.signal });
    await response.body?.getReader().read();
    leaving.abort();
    await eventually('the upstream call is aborted', () => upstream.aborted === abortedBefore + 1);
  });
});

describe('garbage on a connection with a running stream', () => {
  test('closes the connection, and writes nothing between the stream’s frames', async () => {
    upstream.play((response) => void sendStream(response, frames.slice(0, 2)));
    const { hostname, port } = new URL(gateway.url);
    const text = JSON.stringify({ model: 'small', messages, stream: true });
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {});
    let answer = '';
    socket.on('data', (chunk) => (answer += chunk.toString()));
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${gateway.key}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`,
    );
    await eventually('the stream has begun', () => answer.includes('one '));
    socket.write('garbage\r\n\r\n');
    await once(socket, 'close');
    expect(answer.match(/HTTP\/1.1/g)).toHaveLength(1);
    expect(answer).not.toContain('[DONE]');
  });
});

/** Reads an answer until its proper end (`whole`) or until the connection breaks. */
async function readAll(path: string, body: unknown) {
  const response = await gateway.post(path, body);
  const decoder = new TextDecoder();
  let text = '';
  let whole = true;
  try {
    for await (const part of response.body ?? []) text += decoder.decode(part, { stream: true });
  } catch {
    whole = false;
  }
  return { status: response.status, text, whole };
}
