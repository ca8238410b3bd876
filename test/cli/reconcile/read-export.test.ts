import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { calendarOf } from '../../../src/cli/reconcile/calendar.ts';
import { formats } from '../../../src/cli/reconcile/formats.ts';
import type { FormatName } from '../../../src/cli/reconcile/formats.ts';
import { readExport } from '../../../src/cli/reconcile/read-export.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';

async function read(text: string, { format = null as FormatName | null, zone = 'UTC', names = {} } = {}) {
  const file = join(makeTemporaryFolder(), 'export');
  writeFileSync(file, text);
  const terms = { format, calendar: calendarOf(zone), names: new Map(Object.entries(names)) };
  const usage = await readExport(file, terms as Parameters<typeof readExport>[1]);
  const lines = [...usage.lines.all()].map(([day, model, { sums, costNanos }]) =>
    Object.assign({ day, model, costNanos }, sums),
  );
  return { ...usage, lines };
}

describe('a plain export', () => {
  test('is compared in the columns that it has, whatever their order', async () => {
    const { format, compared, hasCost, lines } = await read(
      'output_tokens,note,model,date,input_tokens\n7,"a, b",large,2030-01-31,11\n',
    );
    expect({ format, compared, hasCost }).toEqual({
      format: 'plain',
      compared: ['input', 'output'],
      hasCost: false,
    });
    expect(lines).toMatchObject([{ day: '2030-01-31', model: 'large', input: 11, output: 7 }]);
  });

  test('may be JSON, with a cost to any digit, which is rounded to a billionth of a USD', async () => {
    const rows = [0.1, '$0.2', '1e-9', '0.0000000005', '-0.05', null].map((cost) => ({
      date: '2030-01-31',
      model: 'large',
      input_tokens: 1,
      output_tokens: 1,
      cost: cost ?? '',
    }));
    const { lines, hasCost } = await read(JSON.stringify(rows));
    expect(hasCost).toBe(true);
    expect(lines).toMatchObject([{ input: 6, costNanos: 250_000_002n }]);
  });

  test('has the days of its time zone, and the names of the config', async () => {
    const text =
      'date,model,input_tokens,output_tokens\n2030-01-31T23:30:00Z,large-2029,1,1\n2030-02-01,large-2029,2,2\n';
    const { lines } = await read(text, { zone: 'Europe/Berlin', names: { 'large-2029': 'large' } });
    expect(lines).toMatchObject([{ day: '2030-02-01', model: 'large', input: 3, output: 3 }]);
  });
});

test('pages of JSON may be in a list; a bucket without rows is a day without use', async () => {
  const page = (start: number, results: readonly object[], more: boolean) => ({
    object: 'page',
    data: [{ object: 'bucket', start_time: start, results }],
    has_more: more,
  });
  const row = {
    model: 'large',
    num_model_requests: 1,
    input_tokens: 5,
    input_cached_tokens: 2,
    output_tokens: 3,
  };
  const [monday, tuesday] = [1_893_456_000, 1_893_542_400];
  const both = await read(JSON.stringify([page(monday, [row, row], true), page(tuesday, [], false)]));
  expect(both).toMatchObject({
    format: 'openai',
    firstDay: '2030-01-01',
    lastDay: '2030-01-02',
    rows: 2,
    isCut: false,
  });
  expect(both.lines).toMatchObject([{ day: '2030-01-01', requests: 2, input: 10, cached: 4, output: 6 }]);
  expect((await read(JSON.stringify(page(monday, [row], true)))).isCut).toBe(true);
});

describe('an export that can not be read', () => {
  const plain = 'date,model,input_tokens,output_tokens\n';
  test.each<[string, string, string]>([
    ['is empty', '', 'the file is empty'],
    ['has blanks alone', '\n'.repeat(2_000_000), 'the file begins with more than 1048576 blanks'],
    [
      'has no known fields',
      'a,b\n1,2\n',
      'the format is not recognized by the fields of the export (openai: num_model_requests',
    ],
    [
      'lacks a column',
      'date,input_tokens,output_tokens\n',
      'an export of the format plain needs model, which is missing',
    ],
    [
      'lacks its times',
      'num_model_requests,input_tokens,input_cached_tokens,output_tokens,model\n',
      'an export of the format openai needs start_time, which is missing',
    ],
    ['has a column twice', `date,${plain}`, 'line 1: columns 1 and 2 have the same name'],
    [
      'has a row with too few cells',
      `${plain}2030-01-31,large,1\n`,
      'line 2: 3 cells, where the header has 4',
    ],
    [
      'has a day in another form',
      `${plain}31.1.2030,large,1,1\n`,
      'line 2: date: expected a day such as 2030-01-31',
    ],
    [
      'has a separator in a number',
      `${plain}2030-01-31,large,"1,000",1\n`,
      'line 2: input_tokens: expected a whole number',
    ],
    [
      'has a negative number',
      `${plain}2030-01-31,large,1,-1\n`,
      'line 2: output_tokens: expected a whole number',
    ],
    [
      'has a number that is not exact here',
      `${plain}2030-01-31,large,1000000000000000000,1\n`,
      'line 2: input_tokens: expected a whole number without separators, of at most 9007199254740991',
    ],
    [
      'has a day without a day after it',
      `${plain}9999-12-31,large,1,1\n`,
      'line 2: date: expected a day such as 2030-01-31',
    ],
    [
      'has a day before 1970',
      `${plain}0001-01-01,large,1,1\n`,
      'line 2: date: expected a day such as 2030-01-31',
    ],
    ['has a row without a model', `${plain}2030-01-31,,1,1\n`, 'line 2: model: no model'],
    [
      'has a cost that is none',
      `cost,${plain}1 USD,2030-01-31,large,1,1\n`,
      'line 2: cost: expected an amount of USD',
    ],
    ['is broken JSON', '{"data": [', 'the file begins like JSON, but is none'],
    ['has an entry that is no object', '[1]', 'the JSON has an entry that is no object'],
    [
      'is not grouped by model',
      JSON.stringify([
        {
          start_time: 1_893_456_000,
          model: null,
          num_model_requests: 1,
          input_tokens: 1,
          input_cached_tokens: 0,
          output_tokens: 1,
        },
      ]),
      'entry 1: model: no model: export it grouped by model (group_by=model)',
    ],
  ])('because it %s, is refused with the place', async (_, text, message) => {
    await expect(read(text)).rejects.toThrow(message);
  });

  test('in the format that was chosen, names what that one needs', async () => {
    await expect(read('date,model,input_tokens,output_tokens\n', { format: 'anthropic' })).rejects.toThrow(
      'an export of the format anthropic needs model_version, which is missing',
    );
  });
});

test('the fields by which formats are recognized are not those of another one', () => {
  const needed = (format: (typeof formats)[number]): readonly string[] => [
    ...format.time.slice(0, 1),
    format.model,
    ...Object.values(format.quantities).flatMap((each) =>
      each === 'each_row' ? [] : each.filter((field) => !field.endsWith('?')),
    ),
    ...format.marks,
  ];
  for (const format of formats) {
    const fields = new Set(needed(format));
    const first = formats.find(
      ({ form, marks }) => form === format.form && marks.every((mark) => fields.has(mark)),
    );
    expect(first).toBe(format);
  }
});
