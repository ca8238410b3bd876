import { describe, expect, test } from 'vitest';
import { writeAct, writeValue } from '../../src/console/views/audit/write-act.ts';
import { formatTime } from '../../src/console/widgets/format.ts';

const line = {
  object: 'audit_line',
  number: 1,
  created_at: '2030-01-01T00:00:00.000Z',
  way: 'console',
  actor: 'ada',
  address: null,
  action: 'key.create',
  key_id: 'key_a',
  subject: 'bob',
  result: 'done',
  times: 1,
  changes: [],
} as const;

describe('an act in words', () => {
  test('shows marks in names, which would turn the words behind them around, or hide another name', () => {
    expect(writeAct({ ...line, subject: '\u202eevil2', actor: 'ad\u200ba' })).toBe(
      String.raw`key made: \u{202e}evil2, by ad\u{200b}a`,
    );
  });
});

describe('a field before or after a change', () => {
  test('is the default of the config where a key had no limit of its own, which is no lack of a limit', () => {
    expect(writeValue('key.change', 'concurrency', null)).toBe('default');
    expect(writeValue('key.change', 'compatibility.sampling', null)).toBe('default');
    expect(writeValue('key.change', 'budget.amount', null)).toBe('none');
    expect(writeValue('key.create', 'concurrency', null)).toBe('none');
    expect(writeValue('config.load', 'concurrency', null)).toBe('none');
  });

  test('has times in the zone of the viewer, as the columns beside it', () => {
    const at = '2030-01-31T12:00:00.000Z';
    expect(writeValue('key.change', 'expiresAt', at)).toBe(formatTime(at));
    expect(writeValue('key.change', 'name', '2030-01-31')).toBe('2030-01-31');
  });
});
