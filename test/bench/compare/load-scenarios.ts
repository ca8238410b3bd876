import type { Measured } from './stage.ts';
import { failedOverAnswers, responsesStreams, streams, wholeAnswers } from './orders.ts';
import type { Order, Sending } from './orders.ts';
import { plainFigure, quickShare } from './scenario.ts';
import type { Amount, Figure, Scenario } from './scenario.ts';
import { everyText } from '../simulator/settings.ts';
import type { RunningSubject, Subject } from '../subjects/subject.ts';

/** Scenarios on subjects that run all the time: one load is one run. */
interface LoadPlan {
  readonly name: string;
  readonly title: string;
  readonly figures: readonly Figure[];
  readonly fits: (subject: Subject) => boolean;
  readonly sending: Sending;
  /** How many requests are sent before the first round: compiled code is complete only after thousands. */
  readonly warmUpRequests: number;
  /** Settings of the simulator for these, where they should not take as long as the measured ones. */
  readonly warmUpSettings?: Sending['settings'];
  readonly order: (running: RunningSubject, sending: Sending) => Order;
  readonly read: (measured: Measured) => Readonly<Record<string, number>>;
}

const isProxy = ({ name }: Subject): boolean => name !== 'direct';

const cpuPerRequest = plainFigure('cpuPerRequest', 'CPU per request', '\u00b5s', 0);
const cpuPerEvent: Figure = { ...cpuPerRequest, name: 'cpuPerEvent', title: 'CPU per event', digits: 2 };

/** A time in milliseconds, as the middle of all streams and as the one that a hundredth of them exceeds. */
const spread = (name: string, title: string, isAdded: boolean): readonly Figure[] =>
  (['p50', 'p99'] as const).map((share) => ({
    name: `${name}${share}`,
    title: `${title}, ${share}`,
    unit: 'ms',
    digits: 2,
    isAdded,
  }));
const addedToFirstText = spread('', 'added time to first text', true);
const latency: readonly Figure[] = [
  ...addedToFirstText,
  ...spread('request.', 'from client to upstream', false),
  ...spread('answer.', 'first text from upstream to client', false),
];
const eventLatency: readonly Figure[] = [
  ...addedToFirstText,
  ...spread('event.', 'an event from upstream to client', false),
];

const cpuPerWhole = [
  cpuPerRequest,
  plainFigure('serverCpuPerRequest', 'CPU of PostgreSQL per request', '\u00b5s', 0),
];

const perRequest = ({ cpuMs, result, server }: Measured) => ({
  cpuPerRequest: (cpuMs * 1_000) / result.answers,
  ...(server === null ? {} : { serverCpuPerRequest: (server.cpuMs * 1_000) / result.answers }),
});
const perEvent = ({ cpuMs, result }: Measured) => ({ cpuPerEvent: (cpuMs * 1_000) / result.events });
const firstText = ({ result: { firstText: first, requestWay, answerWay } }: Measured) => ({
  p50: first.p50,
  p99: first.p99,
  'request.p50': requestWay.p50,
  'request.p99': requestWay.p99,
  'answer.p50': answerWay.p50,
  'answer.p99': answerWay.p99,
});
const everyEvent = ({ result: { firstText: first, eventWay } }: Measured) => ({
  p50: first.p50,
  p99: first.p99,
  'event.p50': eventWay.p50,
  'event.p99': eventWay.p99,
});

const wholeBytes = 700;

/** Whole answers, few at once: what each costs and how long it takes where none is written together with many others. */
function fewAtOnce(name: string, title: string, atOnce: number): LoadPlan {
  return {
    name,
    title,
    figures: [...cpuPerWhole, ...spread('total.', 'time of an answer', false)],
    fits: isProxy,
    sending: { requests: 1_000, atOnce, settings: { bodyBytes: wholeBytes } },
    warmUpRequests: 2_000,
    order: wholeAnswers,
    read: (measured) => ({
      ...perRequest(measured),
      'total.p50': measured.result.total.p50,
      'total.p99': measured.result.total.p99,
    }),
  };
}

/** Streams that are opened within half a second and are all open at once, whose every text says when it was written. */
function openedAtOnce(
  name: string,
  title: string,
  streamsAtOnce: number,
  { textEvents, intervalMs }: Readonly<Record<'textEvents' | 'intervalMs', number>>,
): LoadPlan {
  return {
    name,
    title,
    figures: eventLatency,
    fits: () => true,
    sending: {
      requests: streamsAtOnce,
      atOnce: streamsAtOnce,
      startsPerSecond: 2 * streamsAtOnce,
      settings: { textEvents, intervalMs, firstTextMs: 100, roleAheadMs: 1, timed: everyText },
    },
    warmUpRequests: streamsAtOnce,
    warmUpSettings: { textEvents },
    order: streams,
    read: everyEvent,
  };
}

const plans: readonly LoadPlan[] = [
  {
    name: 'whole',
    title: 'Whole answers, 32 at once',
    figures: [...cpuPerWhole, plainFigure('memoryAfter', 'memory after the load', 'MB', 0)],
    fits: isProxy,
    sending: { requests: 3_000, atOnce: 32, settings: { bodyBytes: wholeBytes } },
    warmUpRequests: 20_000,
    order: wholeAnswers,
    read: (measured) => ({ ...perRequest(measured), memoryAfter: measured.rssAfter / 1e6 }),
  },
  {
    name: 'settled',
    title: 'Whole answers, 64 at once',
    figures: [plainFigure('perSecond', 'requests', 'per second', 0), ...cpuPerWhole],
    fits: isProxy,
    sending: { requests: 3_000, atOnce: 64, settings: { bodyBytes: wholeBytes } },
    warmUpRequests: 2_000,
    order: wholeAnswers,
    read: (measured) => ({
      ...perRequest(measured),
      perSecond: (measured.result.answers / measured.result.elapsedMs) * 1_000,
    }),
  },
  fewAtOnce('whole1', 'Whole answers, 1 at a time', 1),
  fewAtOnce('whole4', 'Whole answers, 4 at once', 4),
  {
    name: 'blast8',
    title: 'Streams as fast as they come, 8 events per upstream write',
    figures: [cpuPerEvent],
    fits: isProxy,
    sending: { requests: 400, atOnce: 16, settings: { textEvents: 200, perWrite: 8 } },
    warmUpRequests: 2_000,
    order: streams,
    read: perEvent,
  },
  {
    name: 'blast1',
    title: 'Streams as fast as they come, 1 event per upstream write',
    figures: [cpuPerEvent],
    fits: isProxy,
    sending: { requests: 400, atOnce: 16, settings: { textEvents: 200, perWrite: 1 } },
    warmUpRequests: 1_000,
    order: streams,
    read: perEvent,
  },
  {
    name: 'responses',
    title: 'Responses streams over a chat upstream, 8 events per write',
    figures: [cpuPerEvent],
    fits: ({ isTextgate }) => isTextgate,
    sending: { requests: 400, atOnce: 16, settings: { textEvents: 200, perWrite: 8 } },
    warmUpRequests: 1_000,
    order: responsesStreams,
    read: perEvent,
  },
  {
    name: 'paced',
    title: '500 streams with 20 events a second each',
    figures: [{ ...cpuPerEvent, digits: 1 }],
    fits: isProxy,
    sending: {
      requests: 500,
      atOnce: 500,
      startsPerSecond: 1_000,
      settings: { textEvents: 60, intervalMs: 50, firstTextMs: 50 },
    },
    warmUpRequests: 100,
    warmUpSettings: { textEvents: 60 },
    order: streams,
    read: perEvent,
  },
  {
    name: 'burst',
    title: '400 streams opened at 1,000 a second, 50 at once',
    figures: latency,
    fits: () => true,
    sending: {
      requests: 400,
      atOnce: 50,
      startsPerSecond: 1_000,
      settings: { textEvents: 20, intervalMs: 20, firstTextMs: 100, roleAheadMs: 1, timed: 1 },
    },
    warmUpRequests: 400,
    order: streams,
    read: firstText,
  },
  {
    name: 'one',
    title: 'One stream at a time',
    figures: latency,
    fits: () => true,
    sending: {
      requests: 80,
      atOnce: 1,
      settings: { textEvents: 3, intervalMs: 1, firstTextMs: 20, roleAheadMs: 1, timed: 1 },
    },
    warmUpRequests: 80,
    order: streams,
    read: firstText,
  },
  {
    name: 'failover',
    title: 'Whole answers over three routes of which two fail',
    figures: [cpuPerRequest],
    fits: ({ name, isTextgate }) => isTextgate || name === 'portkey',
    sending: { requests: 1_000, atOnce: 32, settings: { bodyBytes: wholeBytes } },
    warmUpRequests: 2_000,
    order: failedOverAnswers,
    read: perRequest,
  },
  // Last: the connections and the memory of so many streams are left in each subject.
  openedAtOnce('burst500', '500 streams opened at 1,000 a second, with 20 events a second each', 500, {
    textEvents: 40,
    intervalMs: 50,
  }),
  openedAtOnce('burst2000', '2,000 streams opened at 4,000 a second, with 5 events a second each', 2_000, {
    textEvents: 15,
    intervalMs: 200,
  }),
];

/** The scenarios of loads, in the order in which they run. */
export const loadScenarios: readonly Scenario[] = plans.map(scenarioOf);

function scenarioOf({ sending, warmUpRequests, warmUpSettings, order, read, ...facts }: LoadPlan): Scenario {
  const scaled = (requests: number, { isQuick }: Amount): Sending => ({
    ...sending,
    requests: Math.max(sending.atOnce, isQuick ? requests * quickShare : requests),
  });
  return {
    ...facts,
    isFresh: false,
    async warmUp(stage, running, amount) {
      const settings = warmUpSettings ?? sending.settings;
      await stage.measure(running, order(running, { ...scaled(warmUpRequests, amount), settings }));
    },
    async run(stage, running, amount) {
      const measured = await stage.measure(running, order(running, scaled(sending.requests, amount)));
      return { figures: read(measured), loads: [measured] };
    },
  };
}
