import { setImmediate } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import type { ClientConnection } from '../../src/pipeline/client-connection.ts';
import type { OpenedAnswer } from '../../src/pipeline/attempts/first-part.ts';
import { rewrite } from '../../src/pipeline/delivery/send-answer.ts';
import { watchDisconnect } from '../../src/pipeline/delivery/watch-disconnect.ts';
import { Delivery } from '../../src/pipeline/delivery/delivery.ts';
import { ReceivedAnswer } from '../../src/pipeline/attempts/received-answer.ts';
import { createChatResultWriter, createChatStreamWriter } from '../../src/protocol/chat/write-answer.ts';
import { createResponsesStreamWriter } from '../../src/protocol/responses/write-answer.ts';
import type { FinishedAnswer } from '../../src/protocol/text.ts';
import { refuse } from '../../src/shared/errors.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import type { FakeClock } from '../support/fake-clock.ts';
import { noExtras as extras } from '../support/answers.ts';

const identity = { id: '0'.repeat(32), createdAtSeconds: 1, model: 'small' };
const finished: FinishedAnswer = { kind: 'finished', reason: 'stop', rawReason: 'stop', usage: null };
const failure = refuse('upstream_error', 'boom');

/** All that the client got, a line for each call. */
let calls: string[];
let clock: FakeClock;
/** Lets the client of each delivery leave, in the order of their creation. */
let leaves: (() => void)[];
let faults: string[];
let write: () => Promise<void> | undefined;

beforeEach(() => {
  calls = [];
  leaves = [];
  faults = [];
  clock = createFakeClock();
  write = () => undefined;
});

function openDelivery(): Delivery {
  const note = async (call: string): Promise<void> => void calls.push(call);
  const client: ClientConnection = {
    id: identity.id,
    head: { method: 'POST', route: '/', trace: {} },
    triedKeyId: null,
    authorization: undefined,
    otherKeyHeader: null,
    address: '127.0.0.1',
    loggedAddress: null,
    tag: undefined,
    claim: undefined,
    headFault: null,
    retryCount: undefined,
    lastEventId: undefined,
    maxCost: undefined,
    recognize: () => {},
    arrivedBytes: 1,
    readBody: async () => new Uint8Array(),
    onGone: (callback) => void leaves.push(callback),
    onHalfClosed: () => {},
    answer: ({ status, isStream }, body) =>
      note(`${isStream ? 'stream' : 'answer'} ${status} ${body.slice(0, 8)}`),
    open: ({ status, isStream }) => void calls.push(`open ${status} ${isStream}`),
    send(text) {
      calls.push(`send ${text === ': keep-alive\n' ? 'comment' : 'text'}`);
      return write();
    },
    end: () => note('end'),
    tearDown: () => note('tear down'),
  };
  const delivery = new Delivery(client, {
    clock,
    signal: new AbortController().signal,
    headFacts: () => ({
      decision: null,
      limits: null,
      tokens: null,
      balanceNanos: null,
      queueMs: 0,
      stripped: [],
      replayOf: null,
      isUnkept: false,
    }),
    onOpened: () => void calls.push('opened'),
    onFault: (message) => void faults.push(message),
  });
  return delivery;
}

const streamWriter = () => createChatStreamWriter(identity, false);

describe('a delivery', () => {
  test('opens a stream once, with its first part, and ends it once', async () => {
    const delivery = openDelivery();
    delivery.begin(streamWriter());
    delivery.permit();
    delivery.send(['a', 'b']);
    delivery.send(['c']);
    await delivery.finish(finished, null, 1);
    expect(calls).toEqual(['open 200 true', 'opened', 'send text', 'send text', 'end']);
    expect([delivery.wasOpened, delivery.sentStatus]).toEqual([true, 200]);
  });

  test('keeps a whole answer until its end', async () => {
    const delivery = openDelivery();
    delivery.begin(createChatResultWriter(identity));
    delivery.permit();
    delivery.send(['a']);
    delivery.open();
    expect(calls).toEqual([]);
    await delivery.finish(finished, null, 1);
    expect(calls).toEqual(['answer 200 {"id":"c']);
  });

  test('sends nothing before its request is recorded', async () => {
    const delivery = openDelivery();
    delivery.begin(streamWriter());
    expect(() => delivery.send(['a'])).toThrow('before the request is recorded');
    clock.advance(60_000);
    expect(calls).toEqual([]);
  });

  test('answers a failure with an HTTP error until the status is spent, and inside the stream after that', async () => {
    const early = openDelivery();
    await early.fail(failure, null);
    const waiting = openDelivery();
    waiting.begin(streamWriter());
    await waiting.fail(failure, null);
    expect(calls).toEqual(['answer 502 {"error"', 'answer 502 {"error"']);
    const open = openDelivery();
    open.begin(streamWriter());
    open.permit();
    open.send(['a']);
    await open.fail(failure, null);
    expect(calls.slice(2)).toEqual(['open 200 true', 'opened', 'send text', 'tear down']);
  });

  test('ends a failed Responses stream well, because its protocol has an event for that', async () => {
    const delivery = openDelivery();
    delivery.begin(createResponsesStreamWriter(identity, extras));
    delivery.permit();
    delivery.send(['a']);
    await delivery.fail(failure, null);
    expect(calls.at(-1)).toBe('end');
  });

  test('throws at a second end, a part after the end, and a writer that is chosen twice', async () => {
    const delivery = openDelivery();
    delivery.begin(streamWriter());
    expect(() => delivery.begin(streamWriter())).toThrow('delivery law broken');
    delivery.permit();
    await delivery.finish(finished, null, 1);
    expect(() => delivery.finish(finished, null, 1)).toThrow('delivery law broken');
    expect(() => delivery.fail(failure, null)).toThrow('delivery law broken: a second end');
    expect(() => delivery.abandon()).toThrow('delivery law broken: a second end');
    expect(() => delivery.send(['late'])).toThrow('delivery law broken');
    expect(() => delivery.passHead(200)).toThrow('delivery law broken');
    expect(calls).toHaveLength(1);
  });

  test('sends nothing to a client that has left', async () => {
    const delivery = openDelivery();
    delivery.begin(streamWriter());
    delivery.permit();
    delivery.onLeft(() => calls.push('left'));
    leaves[0]?.();
    // It holds up no other client of the same answer.
    expect(delivery.send(['a'])).toBe(true);
    delivery.open();
    clock.advance(60_000);
    delivery.abandon();
    expect(calls).toEqual(['left']);
    expect([delivery.hasLeft, delivery.wasOpened, delivery.sentStatus]).toEqual([true, false, null]);
  });

  test('sends comments while its stream is silent, and none while the client is full, sealed or at the end', async () => {
    const delivery = openDelivery();
    delivery.begin(streamWriter());
    delivery.permit();
    clock.advance(15_000);
    expect(calls).toEqual(['open 200 true', 'opened', 'send comment']);
    await Promise.resolve();
    const drained = Promise.withResolvers<void>();
    write = () => drained.promise;
    expect(delivery.send(['a'])).toBe(false);
    const sending = delivery.drained();
    clock.advance(60_000);
    expect(calls).toHaveLength(4);
    drained.resolve();
    await sending;
    clock.advance(15_000);
    expect(calls).toHaveLength(5);
    delivery.seal();
    clock.advance(60_000);
    await delivery.finish(finished, null, 1);
    expect(calls.slice(5)).toEqual(['end']);
    expect([clock.scheduled, faults]).toEqual([0, []]);
  });

  test('sends a comment 15 seconds after the last text, and not later because of when that was', async () => {
    const delivery = openDelivery();
    delivery.begin(streamWriter());
    delivery.permit();
    clock.advance(10_000);
    delivery.send(['a']);
    clock.advance(14_999);
    expect(calls.at(-1)).toBe('send text');
    clock.advance(1);
    expect(calls.at(-1)).toBe('send comment');
    await delivery.finish(finished, null, 1);
  });

  test('is full until the last of its writes has drained', async () => {
    const delivery = openDelivery();
    delivery.begin(streamWriter());
    delivery.permit();
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const writes = [first.promise, second.promise, undefined];
    write = () => writes.shift();
    expect([delivery.send(['a']), delivery.send(['b'])]).toEqual([false, false]);
    first.resolve();
    await setImmediate();
    expect(delivery.send(['c'])).toBe(false);
    second.resolve();
    await delivery.drained();
    expect(delivery.send(['d'])).toBe(true);
  });

  test('is torn down before its end, which it then has, and after an end that could not be written', async () => {
    const [open, ended] = [openDelivery(), openDelivery()];
    open.begin(streamWriter());
    open.permit();
    open.send(['a']);
    await open.tearDown();
    expect([calls.at(-1), clock.scheduled]).toEqual(['tear down', 0]);
    expect(() => open.send(['late'])).toThrow('delivery law broken');
    await ended.fail(failure, null);
    await ended.tearDown();
    expect(calls.slice(-2)).toEqual(['answer 502 {"error"', 'tear down']);
  });

  test('ends an answer that is passed on as it came: whole, or torn down', async () => {
    const [whole, broken] = [openDelivery(), openDelivery()];
    expect(() => whole.passHead(200)).toThrow('before the request is recorded');
    whole.permit();
    broken.permit();
    whole.passHead(418);
    expect(() => whole.fail(failure, null)).toThrow('a second head');
    whole.passWhole();
    await whole.endPassing();
    broken.passHead(200);
    await broken.endPassing();
    expect(calls).toEqual(['end', 'tear down']);
    expect(whole.sentStatus).toBe(418);
  });

  test('throws where the body of an answer is passed on before its head, or after its end', async () => {
    const [early, late] = [openDelivery(), openDelivery()];
    expect(() => early.passWhole()).toThrow('delivery law broken');
    expect(() => early.endPassing()).toThrow('delivery law broken');
    late.permit();
    late.passHead(200);
    await late.endPassing();
    expect(() => late.passWhole()).toThrow('delivery law broken');
    expect(() => late.endPassing()).toThrow('delivery law broken');
  });
});

describe('an exchange', () => {
  const setUp = () => {
    const delivery = openDelivery();
    const interruption = new AbortController();
    const exchange = { delivery, interruption, stage: { stage: 'arrived' } as const, claim: null };
    const unwatch = watchDisconnect(exchange, clock);
    delivery.begin(streamWriter());
    delivery.permit();
    return { exchange, interruption, unwatch };
  };

  test('stops when its client leaves', () => {
    const { interruption, unwatch } = setUp();
    expect(interruption.signal.aborted).toBe(false);
    leaves[0]?.();
    expect(interruption.signal.reason).toBe('client_closed');
    unwatch();
  });

  test('with a client that is full stops the reading until it has drained, on both paths', async () => {
    const { exchange } = setUp();
    const drained = Promise.withResolvers<void>();
    write = () => drained.promise;
    const reads: boolean[] = [];
    const answer: OpenedAnswer = {
      kind: 'opened',
      first: { deltas: ['a'], ending: null },
      async readOn(send) {
        write = () => undefined;
        reads.push(send(['b']));
        return reads.length === 1 ? null : finished;
      },
      release: () => {},
      whenOver: () => {},
    };
    const rewritten = rewrite(answer, new ReceivedAnswer(), exchange, { clock, fastPath: true }, () => {});
    await setImmediate();
    expect(reads).toEqual([]);
    drained.resolve();
    await rewritten;
    expect(reads).toEqual([true, true]);
    await rewrite(
      { ...answer, first: { deltas: [], ending: null } },
      new ReceivedAnswer(),
      exchange,
      {
        clock,
        fastPath: false,
      },
      () => {},
    );
    expect(reads).toEqual([true, true, false]);
  });
});
