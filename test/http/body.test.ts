import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { isForm, readBody, takeReadBody } from '../../src/http/body.ts';
import { isRefusal } from '../../src/shared/errors.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const json = { 'content-type': 'application/json' };
const form = { 'content-type': 'application/x-www-form-urlencoded' };

/** A request whose body comes in these chunks, as Node hands it to an app. */
function requestOf(headers: Readonly<Record<string, string>>, chunks: readonly string[] = []) {
  const request = new IncomingMessage(new Socket());
  Object.assign(request.headers, headers);
  for (const chunk of chunks) request.push(Buffer.from(chunk));
  request.push(null);
  return request;
}

/** What a body is read as: its text, or the code of the refusal. */
const shown = (taken: Awaited<ReturnType<typeof readBody>> | null): string | null => {
  if (taken === null) return null;
  return isRefusal(taken) ? `refused: ${taken.code}` : Buffer.from(taken).toString();
};

describe('a body that the surrounding app has read', () => {
  /** Reads a request as a parser would, which leaves `body` on it. */
  const takeParsed = async (headers: Readonly<Record<string, string>>, body?: unknown) => {
    const request = requestOf(headers);
    request.resume();
    await setImmediate();
    if (body !== undefined) Object.assign(request, { body });
    return shown(takeReadBody(request, 20));
  };

  test.each<[string, Readonly<Record<string, string>>, unknown, string]>([
    ['is empty where none was announced', {}, undefined, ''],
    ['is empty where the announced one was', { 'content-length': '0' }, undefined, ''],
    [
      'is lost where a parser left nothing of it',
      { 'content-length': '2' },
      undefined,
      'refused: server_error',
    ],
    [
      'is lost where it had no length, too',
      { 'transfer-encoding': 'chunked' },
      undefined,
      'refused: server_error',
    ],
    ['is taken as bytes', json, Buffer.from('{ }'), '{ }'],
    ['is taken as text', json, '{  }', '{  }'],
    ['is written as JSON again', json, { a: [1] }, '{"a":[1]}'],
    [
      'is written as JSON of a special type again',
      { 'content-type': 'application/a.b+json' },
      { a: 1 },
      '{"a":1}',
    ],
    ['is written as a form again', form, { a: 'x y', b: ['1', '2'] }, 'a=x%20y&b=1&b=2'],
    [
      'is lost as a form with nested fields',
      { ...form, 'content-length': '6' },
      { a: { b: '1' } },
      'refused: server_error',
    ],
    [
      'is lost as a value of another type',
      { 'content-type': 'text/plain', 'content-length': '7' },
      { a: 1 },
      'refused: server_error',
    ],
    ['may have the largest size', json, 'x'.repeat(20), 'x'.repeat(20)],
    ['may not be larger', json, 'x'.repeat(21), 'refused: request_too_large'],
  ])('%s', async (_what, headers, body, expected) => {
    expect(await takeParsed(headers, body)).toBe(expected);
  });

  test('is not taken before its end, and is incomplete if it never comes', () => {
    const request = requestOf(json, ['{}']);
    expect(takeReadBody(request, 20)).toBeNull();
    request.destroy();
    expect(shown(takeReadBody(request, 20))).toBe('refused: invalid_json');
  });
});

describe('a body that is still to be read', () => {
  const read = (headers: Readonly<Record<string, string>>, chunks: readonly string[], takesForms = false) => {
    const request = requestOf(headers, chunks);
    return readBody(request, new ServerResponse(request), 20, takesForms).then(shown);
  };

  test.each<[string, Readonly<Record<string, string>>, readonly string[], string]>([
    ['in one chunk', json, ['{"a":1}'], '{"a":1}'],
    ['in several', json, ['{"a"', ':1', '}'], '{"a":1}'],
    ['without a byte', json, [], ''],
    ['with parameters of its type', { 'content-type': 'Application/JSON; charset=utf-8' }, ['{}'], '{}'],
    ['of the largest size', json, ['x'.repeat(10), 'y'.repeat(10)], 'x'.repeat(10) + 'y'.repeat(10)],
    ['that is larger', json, ['x'.repeat(10), 'y'.repeat(11)], 'refused: request_too_large'],
    ['of a larger announced size', { ...json, 'content-length': '21' }, [], 'refused: request_too_large'],
    ['of another type', { 'content-type': 'text/plain' }, ['{}'], 'refused: unsupported_content_type'],
    ['without a type', {}, ['{}'], 'refused: unsupported_content_type'],
    ['of a form, where none is taken', form, ['a=1'], 'refused: unsupported_content_type'],
    ['with the coding that is none', { ...json, 'content-encoding': 'Identity' }, ['{}'], '{}'],
    ['with a coding', { ...json, 'content-encoding': 'gzip' }, ['{}'], 'refused: unsupported_content_type'],
  ])('%s is read, or refused', async (_what, headers, chunks, expected) => {
    expect(await read(headers, chunks)).toBe(expected);
  });

  test('of a long type is refused with the beginning of it', async () => {
    const type = `a/${'b'.repeat(100)}`;
    const request = requestOf({ 'content-type': type });
    expect(await readBody(request, new ServerResponse(request), 20)).toMatchObject({
      message: `Unsupported content type '${type.slice(0, 64)}': send the header 'Content-Type: application/json'.`,
    });
  });

  test('of a form is read where forms are taken', async () => {
    expect(await read(form, ['a=1'], true)).toBe('a=1');
    expect([isForm(requestOf(form)), isForm(requestOf(json)), isForm(requestOf({}))]).toEqual([
      true,
      false,
      false,
    ]);
  });

  test('is not kept by its request, whose listeners live as long as the answer', async () => {
    const request = new IncomingMessage(new Socket());
    Object.assign(request.headers, json);
    const chunks = [1, 2].map(() => {
      const chunk = Buffer.alloc(10_000, ' ');
      request.push(chunk);
      return new WeakRef(chunk);
    });
    request.push(null);
    const body = await readBody(request, new ServerResponse(request), 20_000);
    expect(isRefusal(body) ? body : body.length).toBe(20_000);
    await setImmediate();
    collectGarbage();
    expect(chunks.map((chunk) => chunk.deref() === undefined)).toEqual([true, true]);
    expect(request.listenerCount('end')).toBeGreaterThan(0);
  });

  test('is incomplete where its connection breaks', async () => {
    const request = new IncomingMessage(new Socket());
    Object.assign(request.headers, json);
    request.push(Buffer.from('{'));
    const reading = readBody(request, new ServerResponse(request), 20);
    request.destroy();
    expect(shown(await reading)).toBe('refused: invalid_json');
  });
});
