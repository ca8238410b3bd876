import type { LoadOrder } from '../client/order.ts';
import { everyText, writeSettings } from '../simulator/settings.ts';
import type { SimulatorSettings } from '../simulator/settings.ts';
import { modelNames } from '../subjects/textgate.ts';
import type { RunningSubject } from '../subjects/subject.ts';

/** An order without the ports, which the subject has. */
export type Order = Omit<LoadOrder, 'ports'>;

/** How many requests of a kind are sent, and how. */
export interface Sending {
  readonly requests: number;
  readonly atOnce: number;
  readonly startsPerSecond?: number;
  /** The simulator's settings for each of them. */
  readonly settings: Partial<SimulatorSettings>;
  /** The length of the prompt in bytes, if it is not short. */
  readonly promptBytes?: number;
}

/** When a load is cut off, in milliseconds: far longer than any of them takes. */
const deadlineMs = 60_000;

/** The lines of a stream besides those with text: role, finish reason, usage and `[DONE]`. */
const otherChatEvents = 4;

/** The lines of a Responses stream besides its deltas: four before them, four after them. */
const otherResponsesEvents = 8;

/** Orders whole answers of Chat Completions. */
export function wholeAnswers({ headers }: Pick<RunningSubject, 'headers'>, sending: Sending): Order {
  return { ...orderOf(sending, headers), body: chatBody(sending, modelNames.plain, false), events: null };
}

/** Orders whole answers of a model whose first two routes fail. */
export function failedOverAnswers(
  { failoverHeaders }: Pick<RunningSubject, 'failoverHeaders'>,
  sending: Sending,
): Order {
  const order = orderOf(sending, failoverHeaders ?? {});
  return { ...order, body: chatBody(sending, modelNames.failover, false), events: null };
}

/** Orders streams of Chat Completions with their usage. */
export function streams({ headers }: Pick<RunningSubject, 'headers'>, sending: Sending): Order {
  const { textEvents, held, endless, timed } = sending.settings;
  const isOpenEnded = held === 1 || endless === 1 || textEvents === undefined;
  return {
    ...orderOf(sending, headers),
    body: chatBody(sending, modelNames.plain, true),
    events: isOpenEnded ? null : textEvents + otherChatEvents,
    stamps: timed === everyText ? (textEvents ?? null) : null,
  };
}

/** The words of a prompt that the demo upstream quotes back, which is as many as it quotes. */
const quotedWords = 100;

/** Orders streams of the demo upstream, all at once: it speaks a word every 40 ms, for five seconds. */
export function demoStreams({ headers }: Pick<RunningSubject, 'headers'>, requests: number): Order {
  const content = 'a '.repeat(quotedWords);
  return {
    ...orderOf({ requests, atOnce: requests, settings: {} }, headers),
    body: JSON.stringify({ model: modelNames.demo, stream: true, messages: [{ role: 'user', content }] }),
    events: null,
  };
}

/** Orders streams of the Responses API. */
export function responsesStreams({ headers }: Pick<RunningSubject, 'headers'>, sending: Sending): Order {
  return {
    ...orderOf(sending, headers),
    path: '/v1/responses',
    body: JSON.stringify({ model: modelNames.plain, stream: true, input: promptOf(sending) }),
    events: (sending.settings.textEvents ?? 0) + otherResponsesEvents,
  };
}

function orderOf({ requests, atOnce, startsPerSecond = 0 }: Sending, headers: Order['headers']) {
  return {
    path: '/v1/chat/completions',
    headers,
    keys: [],
    stamps: null,
    requests,
    atOnce,
    startsPerSecond: startsPerSecond === 0 ? null : startsPerSecond,
    readPauseMs: null,
    deadlineMs,
  };
}

function chatBody(sending: Sending, model: string, stream: boolean): string {
  return JSON.stringify({
    model,
    stream,
    ...(stream ? { stream_options: { include_usage: true } } : {}),
    messages: [
      { role: 'system', content: 'Answer in one sentence.' },
      { role: 'user', content: promptOf(sending) },
    ],
  });
}

function promptOf({ settings, promptBytes = 0 }: Sending): string {
  return `${writeSettings(settings)} ${'Then tell me what follows from it. '.repeat(Math.ceil(promptBytes / 35))}`;
}
