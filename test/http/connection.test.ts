import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { OwnResponse } from '../../src/http/answers/own-response.ts';
import { Connection, connectionOf } from '../../src/http/connections/connection.ts';
import { eventually } from '../support/eventually.ts';
import { openRaw } from '../support/raw-socket.ts';

/** How long a client's connection stays open after an answer, and how long any does, by Node's own timer; in milliseconds. */
const [clientIdleMs, anonymousIdleMs] = [65_000 + 1_000, 5_000 + 1_000];

/** How long a client may take for the rest of a late request, in milliseconds. */
const restMs = 1_000;

const whole = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx';
const halfBody = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nx';

// Node's own timers and those of `eventually` stay real.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

/** Expects a call after exactly so many milliseconds. */
function expectCalledIn(ms: number, callback: () => void): void {
  vi.advanceTimersByTime(ms - 1);
  expect(callback).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(callback).toHaveBeenCalledOnce();
}

/** One connection to a server whose answers the test ends. */
async function open({ isClientAddress = false } = {}) {
  const requests: IncomingMessage[] = [];
  const responses: OwnResponse[] = [];
  const options = { ServerResponse: OwnResponse, keepAliveTimeout: 5_000 };
  const server = createServer(options, (request, response) => {
    if (connectionOf(request.socket)?.addPending(request, response) !== true) return;
    requests.push(request);
    responses.push(response);
  });
  const opened = Promise.withResolvers<Connection>();
  server.on('connection', (socket) => {
    const connection = new Connection(socket, {
      changed: () => {},
      overrun: () => {},
      isClientAddress: () => isClientAddress,
      keepAlive: { idleMs: 65_000, header: 'timeout=65' },
    });
    opened.resolve(connection);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const client = openRaw(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const connection = await opened.promise;
  const send = async (text: string, count = 1): Promise<void> => {
    const expected = requests.length + count;
    client.socket.write(text.repeat(count));
    await eventually('the requests have arrived', () => requests.length === expected);
  };
  /** Ends the answer to the request of a number, and those before it. */
  const answer = async (upTo: number): Promise<void> => {
    const left = responses.length - upTo - 1;
    for (const response of responses.slice(0, upTo + 1)) response.end('ok');
    await eventually('the answers are sent', () => connection.pending.length === left);
  };
  return { client, connection, requests, send, answer };
}

describe('an idle connection', () => {
  test('is kept for a while after an answer, longer with a known key than without', async () => {
    const { connection, send, answer } = await open();
    await send(whole);
    await answer(0);
    expect(connection.socket.timeout).toBe(anonymousIdleMs);
    await send(whole);
    connection.recognize();
    await answer(1);
    expect(connection.socket.timeout).toBe(clientIdleMs);
  });

  test('is kept as long without a key at an address with one', async () => {
    const { connection, send, answer } = await open({ isClientAddress: true });
    await send(whole);
    await answer(0);
    expect(connection.socket.timeout).toBe(clientIdleMs);
  });
});

test('a connection is quiet behind an answer, until anything of a next request arrives', async () => {
  const { client, connection, send, answer } = await open();
  expect(connection.isQuiet).toBe(false);
  await send(whole);
  expect(connection.isQuiet).toBe(false);
  await answer(0);
  expect(connection.isQuiet).toBe(true);
  client.socket.write('P');
  await eventually('the next request has begun', () => !connection.isQuiet);
  expect(connection.isIdle).toBe(true);
});

test('a connection is read again when fewer answers are pending than stopped it', async () => {
  const { connection, send, answer } = await open();
  await send(whole, 9);
  await eventually('reading has stopped', () => connection.socket.isPaused());
  await answer(0);
  expect(connection.socket.isPaused()).toBe(true);
  await answer(1);
  expect(connection.socket.isPaused()).toBe(false);
});

describe('a head that is late', () => {
  /** A connection that is not read any more, as too many answers are pending. */
  const openUnread = async () => {
    const scene = await open();
    await scene.send(whole, 8);
    await eventually('reading has stopped', () => scene.connection.socket.isPaused());
    return scene;
  };

  test('is refused at once if the connection was read all the time', async () => {
    const { connection } = await open();
    const refuse = vi.fn<() => void>();
    expect(connection.extendTime({ restMs, refuse })).toBe(false);
    vi.advanceTimersByTime(10 * restMs);
    expect(refuse).not.toHaveBeenCalled();
  });

  test('has its time from when the connection is read again', async () => {
    const { connection, answer } = await openUnread();
    const refuse = vi.fn<() => void>();
    expect(connection.extendTime({ restMs, refuse })).toBe(true);
    vi.advanceTimersByTime(10 * restMs);
    await answer(0);
    expect(connection.socket.isPaused()).toBe(false);
    expectCalledIn(restMs, refuse);
  });

  test('has the rest of that time if it is found late after that', async () => {
    const { connection, answer } = await openUnread();
    await answer(7);
    vi.advanceTimersByTime(400);
    const refuse = vi.fn<() => void>();
    expect(connection.extendTime({ restMs, refuse })).toBe(true);
    expectCalledIn(restMs - 400, refuse);
  });

  test('is refused at once if that time is over', async () => {
    const { connection, answer } = await openUnread();
    await answer(7);
    vi.advanceTimersByTime(restMs - 1);
    expect(connection.extendTime({ restMs, refuse: () => {} })).toBe(true);
    vi.advanceTimersByTime(1);
    expect(connection.extendTime({ restMs, refuse: () => {} })).toBe(false);
  });

  test('is not refused if it has arrived by then', async () => {
    const { connection, send, answer } = await openUnread();
    const refuse = vi.fn<() => void>();
    connection.extendTime({ restMs, refuse });
    await answer(7);
    await send(whole);
    vi.advanceTimersByTime(restMs);
    expect(refuse).not.toHaveBeenCalled();
  });

  test('is not refused on a connection that was closed', async () => {
    const { connection, answer } = await openUnread();
    const refuse = vi.fn<() => void>();
    connection.extendTime({ restMs, refuse });
    await answer(0);
    const closed = once(connection.socket, 'close');
    connection.destroy();
    await closed;
    vi.advanceTimersByTime(restMs);
    expect(refuse).not.toHaveBeenCalled();
  });
});

describe('a body that is late', () => {
  /** A connection whose latest request has half of its body. */
  const openHalf = async () => {
    const scene = await open();
    await scene.send(halfBody);
    const [request] = scene.requests;
    if (request === undefined) throw new Error('no request has arrived');
    return { ...scene, request };
  };

  test('has its time from when it is read, after the wait for a slot', async () => {
    const { connection, request } = await openHalf();
    const refuse = vi.fn<() => void>();
    expect(connection.extendTime({ restMs, refuse })).toBe(true);
    vi.advanceTimersByTime(10 * restMs);
    connection.startBody(request);
    expectCalledIn(restMs, refuse);
  });

  test('has the rest of that time if it is found late while it is read', async () => {
    const { connection, request } = await openHalf();
    connection.startBody(request);
    vi.advanceTimersByTime(400);
    const refuse = vi.fn<() => void>();
    expect(connection.extendTime({ restMs, refuse })).toBe(true);
    expectCalledIn(restMs - 400, refuse);
  });

  test('is refused at once if that time is over, or its request is answered already', async () => {
    const { connection, request, answer } = await openHalf();
    connection.startBody(request);
    vi.advanceTimersByTime(restMs);
    expect(connection.extendTime({ restMs, refuse: () => {} })).toBe(false);
    const other = await openHalf();
    await other.answer(0);
    expect(other.connection.extendTime({ restMs, refuse: () => {} })).toBe(false);
    await answer(0);
  });

  test.each(['while it waits for a slot', 'while it is read'])(
    'is not refused if it arrives %s',
    async (moment) => {
      const { client, connection, request } = await openHalf();
      const refuse = vi.fn<() => void>();
      connection.extendTime({ restMs, refuse });
      if (moment === 'while it is read') connection.startBody(request);
      client.socket.write('x');
      request.resume();
      await eventually('it has arrived', () => request.complete);
      connection.startBody(request);
      vi.advanceTimersByTime(10 * restMs);
      expect(refuse).not.toHaveBeenCalled();
    },
  );

  test('has its time from when it is read, whenever that of an earlier request was', async () => {
    const { client, connection, request, send } = await openHalf();
    connection.startBody(request);
    client.socket.write('x');
    vi.advanceTimersByTime(10 * restMs);
    await send(halfBody);
    expect(connection.extendTime({ restMs, refuse: () => {} })).toBe(true);
  });

  test('has its time once: that of a later request is its own', async () => {
    const { client, connection, requests, send } = await openHalf();
    const refuse = vi.fn<() => void>();
    connection.extendTime({ restMs, refuse });
    for (const request of requests) connection.startBody(request);
    client.socket.write('x');
    await send(halfBody);
    for (const request of requests) connection.startBody(request);
    vi.advanceTimersByTime(10 * restMs);
    expect(refuse).not.toHaveBeenCalled();
  });

  test('of a later request has its time, also when the reading of an earlier one begins meanwhile', async () => {
    const { connection, client, requests, request, send } = await openHalf();
    client.socket.write('x');
    await send(halfBody);
    const refuse = vi.fn<() => void>();
    connection.extendTime({ restMs, refuse });
    connection.startBody(request);
    vi.advanceTimersByTime(10 * restMs);
    expect(refuse).not.toHaveBeenCalled();
    for (const each of requests.slice(1)) connection.startBody(each);
    vi.advanceTimersByTime(restMs);
    expect(refuse).toHaveBeenCalledOnce();
  });
});
