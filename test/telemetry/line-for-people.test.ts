import { expect, test } from 'vitest';
import { terminalLine } from '../../src/telemetry/terminal-line.ts';

test('nothing that a name or a reason holds reaches the terminal as a control sequence or a second line', () => {
  const shown = [
    terminalLine({ ...request, model: 'a\u001b[2Jb\nchat stream forged: 200' }),
    terminalLine({ msg: 'it broke', reason: 'x\u001b]0;title\u0007\u202e\ny' }),
  ];
  for (const line of shown) expect(line).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  expect(shown[0]).toContain(String.raw`a\u{1b}[2Jb\nchat`);
});

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
  [{ msg: 'ledger check failed', reason: 'locked' }, 'ledger check failed: locked'],
])('a terminal shows one line: %#', (line, shown) => {
  expect(terminalLine(line)).toBe(shown);
});
