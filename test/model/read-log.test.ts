import { describe, expect, test } from 'vitest';
import type { LogEvent } from './claim-log.ts';
import { readLog } from './read-log.ts';

const starts = (process: number): LogEvent => ({ what: 'starts', process });
const asks = (client: number, process: number): LogEvent => ({ what: 'asks', client, process });
const ofClient = (client: number, what: 'leaves' | 'is gone' | 'is served' | 'is told'): LogEvent => ({
  what,
  client,
});
const isCalled = (call: number, process: number): LogEvent => ({ what: 'is called', call, process });
const ofCall = (call: number, what: 'is answered' | 'is cut off'): LogEvent => ({ what, call });
const isCharged = (times: number): LogEvent => ({ what: 'is charged', times });

/** Client 0 asks process 0, which makes call 0. */
const begins = [starts(0), starts(1), asks(0, 0), isCalled(0, 0)];
/** Call 0 is answered, and client 0 gets that. */
const isServed = [ofCall(0, 'is answered'), ofClient(0, 'is served'), isCharged(1)];
const standsStill: LogEvent = { what: 'stands still', process: 0 };
const mayLoseLease: LogEvent = { what: 'may lose its lease', process: 0 };
const goesOn: LogEvent = { what: 'goes on', process: 0 };
const isKilled: LogEvent = { what: 'is killed', process: 0 };
/** The process that ran it is lost, and another one runs it once the lease may be over. */
const runsAnew: readonly LogEvent[] = [
  ofCall(0, 'is cut off'),
  mayLoseLease,
  ofClient(0, 'leaves'),
  asks(1, 1),
  isCalled(1, 1),
  ofCall(1, 'is answered'),
  ofClient(1, 'is served'),
  isCharged(1),
];

describe('the log of a claim is allowed', () => {
  test.each<[string, readonly LogEvent[]]>([
    ['that is asked, answered and charged', [...begins, ...isServed]],
    [
      'whose client leaves and comes back',
      [
        ...begins,
        ofClient(0, 'leaves'),
        asks(1, 1),
        ofClient(0, 'is gone'),
        ofCall(0, 'is answered'),
        ofClient(1, 'is served'),
        isCharged(1),
      ],
    ],
    [
      'whose process is killed, and which runs anew once the lease is over',
      [...begins, isKilled, ...runsAnew],
    ],
    [
      'whose process stands still for longer than its lease, and goes on',
      [
        ...begins,
        standsStill,
        mayLoseLease,
        asks(1, 1),
        isCalled(1, 1),
        goesOn,
        ofCall(0, 'is cut off'),
        ofCall(1, 'is answered'),
        ofClient(1, 'is served'),
        isCharged(1),
      ],
    ],
    [
      'whose process is cut off from the database, and stops what it runs',
      [...begins, { what: 'loses the database', process: 0 }, ...runsAnew],
    ],
    [
      'that another process answers from the memory of the first one',
      [
        ...begins,
        ofClient(0, 'leaves'),
        ofCall(0, 'is answered'),
        ofClient(0, 'is gone'),
        asks(1, 1),
        ofClient(1, 'is served'),
        isCharged(1),
      ],
    ],
    [
      'whose client is told what was charged, as the process with the answer was killed',
      [...begins, ofCall(0, 'is answered'), isKilled, asks(1, 1), ofClient(1, 'is told'), isCharged(1)],
    ],
    [
      'whose client is told what was charged, as the nodes are apart',
      [
        ...begins,
        ofClient(0, 'leaves'),
        ofCall(0, 'is answered'),
        { what: 'nodes are apart' },
        asks(1, 1),
        ofClient(1, 'is told'),
        isCharged(1),
      ],
    ],
    [
      'that is stopped at the end of its grace, and told',
      [
        ...begins,
        ofClient(0, 'leaves'),
        ofCall(0, 'is cut off'),
        asks(1, 1),
        ofClient(1, 'is told'),
        isCharged(1),
      ],
    ],
    [
      'of which a crash of the database forgets that it was freed',
      [
        ...begins,
        { what: 'the database may crash' },
        { what: 'loses the database', process: 0 },
        { what: 'has the database', process: 0 },
        { what: 'the database is back' },
        ...isServed,
      ],
    ],
  ])('%s', (_what, log) => {
    expect(readLog(log)?.refused).toBeNull();
  });
});

describe('the log of a claim is refused', () => {
  test.each<[string, readonly LogEvent[], number]>([
    ['that is called twice by one process', [...begins, isCalled(1, 0)], 4],
    ['that is called by two processes, with no loss between', [...begins, asks(1, 1), isCalled(1, 1)], 5],
    [
      'that runs anew while the process of the first run stands still, but has its lease',
      [...begins, standsStill, asks(1, 1), isCalled(1, 1)],
      6,
    ],
    [
      'that runs anew although its first call was answered',
      [...begins, ofCall(0, 'is answered'), asks(1, 1), isCalled(1, 1)],
      6,
    ],
    [
      'that runs anew after its process was killed, but before the lease is over',
      [...begins, isKilled, ofCall(0, 'is cut off'), asks(1, 1), isCalled(1, 1)],
      7,
    ],
    [
      'that goes on in a process whose lease was lost',
      [
        ...begins,
        standsStill,
        mayLoseLease,
        asks(1, 1),
        isCalled(1, 1),
        goesOn,
        ofCall(0, 'is answered'),
        ofClient(0, 'is served'),
      ],
      10,
    ],
    ['whose client is served before the upstream has answered', [...begins, ofClient(0, 'is served')], 4],
    ['whose client is served without a charge', [...begins, ...isServed.slice(0, 2), isCharged(0)], 6],
    ['that is charged twice', [...begins, ...isServed.slice(0, 2), isCharged(2)], 6],
    [
      'whose client is served a text that was cut',
      [...begins, ofClient(0, 'leaves'), ofCall(0, 'is cut off'), asks(1, 1), ofClient(1, 'is served')],
      7,
    ],
    ['that is stopped while its client listens', [...begins, ofCall(0, 'is cut off')], 4],
    [
      'whose client is told although the answer is there',
      [...begins, ofClient(0, 'leaves'), ofCall(0, 'is answered'), asks(1, 1), ofClient(1, 'is told')],
      7,
    ],
    ['whose client is told before anything is charged', [...begins, asks(1, 1), ofClient(1, 'is told')], 5],
    ['that is called by a process that was not asked', [...begins.slice(0, 3), isCalled(0, 1)], 3],
    [
      'that is called by a process that stands still',
      [...begins.slice(0, 3), standsStill, isCalled(0, 0)],
      4,
    ],
    [
      'whose client is refused for what it asks itself',
      [...begins, asks(1, 1), { what: 'is refused', client: 1 }],
      5,
    ],
  ])('%s', (_what, log, accepted) => {
    const reading = readLog(log);
    expect([reading?.accepted, reading?.refused]).toEqual([accepted, log[accepted]]);
  });
});

test('of a log behind one of whose events there are too many states nothing is said', () => {
  expect(readLog(begins, 2)).toBeNull();
});
