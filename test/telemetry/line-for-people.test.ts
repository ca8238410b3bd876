import { expect, test } from 'vitest';
import { lineForPeople } from '../../src/telemetry/line-for-people.ts';

const request = {
  msg: 'request',
  protocol: 'chat',
  mode: 'stream',
  model: 'small',
  upstream: 'local',
  status: 200,
  outcome: 'completed',
  code: null,
  inputTokens: 11,
  outputTokens: 7,
  charge: '0.00125',
  totalMs: 291.4,
  requestId: 'req_1',
};

test.each([
  [request, 'chat stream small via local: 200 completed 11+7 tokens 0.00125 USD 291.4 ms req_1'],
  [
    {
      ...request,
      model: null,
      upstream: null,
      status: 429,
      outcome: 'refused',
      code: 'rate_limit_exceeded',
      inputTokens: null,
    },
    'chat stream -: 429 refused (rate_limit_exceeded) 0.00125 USD 291.4 ms req_1',
  ],
  [{ msg: 'an upstream is used again', upstream: 'local' }, 'an upstream is used again: local'],
  [
    { msg: 'the books could not be looked over', reason: 'locked' },
    'the books could not be looked over: locked',
  ],
])('a terminal shows one line: %#', (line, shown) => {
  expect(lineForPeople(line)).toBe(shown);
});
