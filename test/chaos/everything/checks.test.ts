import { describe, expect, test } from 'vitest';
import { chatFrames } from '../../support/scripted-upstream.ts';
import { checkBodies, checkEvidence, checkIdle, checkLog } from './checks.ts';
import type { AccountRow, Evidence, RecordRow, Views } from './checks.ts';
import { noEndInTime, splitAnswers } from './clients.ts';
import type { Sent } from './clients.ts';
import type { ServedCall } from './upstreams.ts';

/** 10 input tokens at 1,000 nano-USD and 2 output tokens at 2,000. */
const charge = 14_000;
const balance = 1_000_000_000;
const text = 'answer0ofa end';
const whole = chatFrames(['answer0ofa ', 'end']).join('');
const cut = chatFrames(['answer0ofa ', 'end']).slice(0, 2).join('');

const sent: Sent = {
  number: 0,
  node: 0,
  keyId: 'key',
  protocol: 'chat',
  isStream: true,
  promptChars: 40,
  startedMs: 1_000,
  endedMs: 1_200,
  status: 200,
  requestId: 'request',
  body: whole,
  isEnded: true,
  hasLeft: false,
  mayBeUnread: false,
  isBehindBroken: false,
  fault: null,
};

const call: ServedCall = {
  number: 0,
  upstream: 'a',
  behaviour: 'answers at once',
  kind: 'text',
  arrivedMs: 1_010,
  endedMs: 1_100,
  isCut: false,
  status: 200,
  text,
  wholeText: text,
  isWhole: true,
  usage: { input: 10, output: 2 },
  usual: { input: 10, output: 2 },
};

const record: RecordRow = { requestId: 'request', keyId: 'key', outcome: 'completed', charge };

const account: AccountRow = {
  keyId: 'key',
  balance: balance - charge,
  held: 0,
  spent: charge,
  ledger: balance - charge,
  credits: balance,
};

const right: Evidence = {
  sent: [sent],
  calls: [call],
  broken: [],
  records: [record],
  accounts: [account],
  credited: new Map([['key', balance]]),
  hasSharedLimits: true,
};

const unanswered: Sent = { ...sent, status: 0, requestId: '', body: '', isEnded: false, fault: 'it broke' };

/** A run in which nothing came of the one request. */
const unansweredWith = (changes: Partial<Sent>, others: Partial<Evidence> = {}): Evidence => ({
  ...right,
  sent: [{ ...unanswered, ...changes }],
  calls: [],
  records: [],
  accounts: [],
  ...others,
});

const chargedOf = (by: number): Evidence => ({
  ...right,
  records: [{ ...record, charge: charge + by }],
  accounts: [
    { ...account, spent: charge + by, balance: balance - charge - by, ledger: balance - charge - by },
  ],
});

const accountWith = (changes: Partial<AccountRow>): Evidence => ({
  ...right,
  accounts: [{ ...account, ...changes }],
});

/** Further calls of an upstream, which belong to no request. */
const callsOf = (upstream: string, count: number, everyMs: number, lengthMs: number): ServedCall[] =>
  Array.from({ length: count }, (_, index) => ({
    ...call,
    number: 1_000 + index,
    upstream,
    arrivedMs: 10_000 + index * everyMs,
    endedMs: 10_000 + index * everyMs + lengthMs,
  }));

describe('the checks of a run find no fault', () => {
  test.each([
    ['in one that is right', right],
    ['in limits that are just kept', { ...right, calls: [call, ...callsOf('a', 4, 1, 500)] }],
    ['in starts that are just few enough', { ...right, calls: [call, ...callsOf('b', 150, 100, 50)] }],
    ['in a kept connection that was closed before its request', unansweredWith({ mayBeUnread: true })],
    ['in a request behind an answer that broke off', unansweredWith({ isBehindBroken: true })],
    [
      'in a connection that breaks with its gateway',
      unansweredWith({}, { broken: [{ node: 0, fromMs: 1_100, toMs: 1_150 }] }),
    ],
  ])('%s', (_, evidence) => expect(checkEvidence(evidence)).toEqual([]));
});

describe('the checks of a run find', () => {
  test.each<readonly [string, Evidence, RegExp]>([
    [
      'a stream that ends as complete although its upstream broke off',
      { ...right, calls: [{ ...call, isWhole: false }] },
      /no upstream gave/,
    ],
    [
      'a complete stream without a part of the text',
      { ...right, sent: [{ ...sent, body: whole.replace('answer0ofa ', '') }] },
      /no upstream gave/,
    ],
    ['an answer of another request', { ...right, calls: [{ ...call, number: 7 }] }, /no upstream gave/],
    [
      'a cut stream that HTTP ends well and that says nothing',
      { ...right, sent: [{ ...sent, isStream: false, body: cut }] },
      /unreadable/,
    ],
    [
      'a connection that breaks within a stream that says nothing',
      { ...right, sent: [{ ...sent, body: cut, isEnded: false, fault: 'it broke' }] },
      /200, it broke/,
    ],
    ['a charge of one nano too much', chargedOf(1), /charged 14001, not 14000/],
    ['a charge of one nano too little', chargedOf(-1), /charged 13999, not 14000/],
    [
      'a charge without any call',
      { ...chargedOf(0), sent: [{ ...sent, body: '', hasLeft: true }], calls: [] },
      /charged 14000, at most 0/,
    ],
    ['a complete answer without a record', { ...right, records: [], accounts: [] }, /recorded as nothing/],
    [
      'a complete answer that is recorded as another',
      { ...right, records: [{ ...record, outcome: 'lost' }] },
      /recorded as lost/,
    ],
    ['money that stays held', accountWith({ held: 1 }), /1 held/],
    ['a balance that is off by one nano', accountWith({ balance: balance - charge + 1 }), /has a balance of/],
    ['a sum that is off by one nano', accountWith({ spent: charge + 1 }), /spent 14001/],
    ['a ledger that is off by one nano', accountWith({ ledger: balance - charge - 1 }), /has a ledger of/],
    ['a credit that is booked twice', accountWith({ credits: 2 * balance }), /was credited/],
    [
      'one request too many at once',
      { ...right, calls: [call, ...callsOf('a', 5, 1, 500)] },
      /a had 5 requests at once, with a limit of 4/,
    ],
    [
      'one start too many in a minute',
      { ...right, calls: [call, ...callsOf('b', 151, 100, 50)] },
      /b had 151 starts/,
    ],
    ['one attempt too many', { ...right, calls: [call, call, call, call, call] }, /5 attempts/],
    ['a request that never ends', { ...right, sent: [{ ...sent, endedMs: null }] }, /never ended/],
    ['a request without an answer', unansweredWith({}), /0, it broke/],
    [
      'a request without an answer that reached an upstream',
      unansweredWith({ mayBeUnread: true }, { calls: [call] }),
      /0, it broke/,
    ],
    [
      'a client that waits for ever on a kept connection',
      unansweredWith({ mayBeUnread: true, fault: noEndInTime }),
      /no end of the answer in time/,
    ],
    [
      'a client that waits for ever behind a broken answer',
      unansweredWith({ isBehindBroken: true, fault: noEndInTime }),
      /no end of the answer in time/,
    ],
    [
      'a connection that breaks with another gateway',
      unansweredWith({}, { broken: [{ node: 1, fromMs: 0, toMs: 9_000 }] }),
      /0, it broke/,
    ],
    [
      'a connection that breaks long before its gateway',
      unansweredWith({}, { broken: [{ node: 0, fromMs: 1_201, toMs: 9_000 }] }),
      /0, it broke/,
    ],
    [
      'a request that is passed on for another price',
      { ...right, sent: [{ ...sent, protocol: 'passed' }], records: [{ ...record, charge: 501 }] },
      /charged 501/,
    ],
  ])('%s', (_, evidence, fault) => expect(checkEvidence(evidence).join('\n')).toMatch(fault));
});

describe('the answers on a connection', () => {
  const head = 'HTTP/1.1 200 OK\r\nx-request-id: one\r\n';

  test('are told apart, and which of them is the last one', () => {
    const found = splitAnswers(
      `${head}content-length: 2\r\n\r\nok${head}connection: close\r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n`,
    );
    expect(found.map(({ body, isEnded, saysClose }) => [body, isEnded, saysClose])).toEqual([
      ['ok', true, false],
      ['no', true, true],
    ]);
  });

  test('that lack their last chunk have not ended', () => {
    const [answer] = splitAnswers(`${head}transfer-encoding: chunked\r\n\r\n2\r\nno\r\n`);
    expect(answer).toMatchObject({ body: 'no', isEnded: false });
  });
});

describe('the checks of a log find', () => {
  const line = (level: string, msg: string): string => `${JSON.stringify({ level, msg })}\n`;

  test('nothing in lines that such a run has', () => {
    const log = line('info', 'request') + line('warn', 'upstream circuit opened');
    expect(checkLog(0, log, ['sk-secret'])).toEqual([]);
  });

  test.each([
    ['a key', line('info', 'request of sk-secret'), /logs a prompt, an answer or a key/],
    ['an error that nothing explains', line('error', 'uncaught'), /uncaught/],
    ['a line that is none', 'Error: at x.ts\n', /Error: at x\.ts/],
  ])('%s', (_, log, fault) => expect(checkLog(0, log, ['sk-secret']).join('\n')).toMatch(fault));
});

test('the checks of bodies find an address of an upstream', () => {
  const told: Sent = { ...sent, body: 'connect ECONNREFUSED 127.0.0.1:5' };
  expect(checkBodies([sent], ['127.0.0.1:5'])).toEqual([]);
  expect(checkBodies([told], ['127.0.0.1:5'])).toHaveLength(1);
});

describe('the checks of a gateway at rest find', () => {
  const idle: Views = {
    status: { in_flight: { running: 0, waiting: 0 }, upstreams: { a: { running: 0, waiting: 0 } } },
    upstreams: { data: [{ name: 'a', running: 0, limiter: { in_flight: 0, max_in_flight: 4, waiting: 0 } }] },
    shadows: { data: [{ running: 0, budget: { held: '0.00' } }] },
    groups: { data: [{ in_flight: 0, budget: { held: '0.00' } }] },
    ledger: { faults: [] },
    metrics: 'textgate_requests_in_flight{protocol="chat"} 0\ntextgate_requests_total 5\n',
  };

  test('nothing when all is idle', () => expect(checkIdle(0, idle)).toEqual([]));

  test.each<readonly [string, Partial<Views>]>([
    ['a request that never ended', { status: { ...idle.status, in_flight: { running: 1, waiting: 0 } } }],
    ['a request that waits', { status: { ...idle.status, upstreams: { a: { running: 0, waiting: 1 } } } }],
    ['a slot of an upstream', { upstreams: { data: [{ limiter: { in_flight: 1, waiting: 0 } }] } }],
    ['a shadow', { shadows: { data: [{ running: 1 }] } }],
    ['a nano of a shadow', { shadows: { data: [{ budget: { held: '0.000000001' } }] } }],
    ['a slot of a group', { groups: { data: [{ in_flight: 1 }] } }],
    ['a nano of a group', { groups: { data: [{ budget: { held: '0.000000001' } }] } }],
    ['a fault of the ledger', { ledger: { faults: ['it does not add up'] } }],
    ['a ledger that could not be read', { ledger: {} }],
    ['a gauge', { metrics: 'textgate_upstream_in_flight{upstream="a"} 1\n' }],
    ['an imbalance of one nano', { metrics: 'textgate_ledger_imbalance_nanos -1\n' }],
  ])('%s that is left', (_, changes) => expect(checkIdle(0, { ...idle, ...changes })).toHaveLength(1));
});
