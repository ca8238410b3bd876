import { expect, test } from 'vitest';
import type { ReconciledLine } from '../../../src/cli/reconcile/compare.ts';
import { notesOf } from '../../../src/cli/reconcile/report.ts';
import type { Findings } from '../../../src/cli/reconcile/report.ts';

const line: ReconciledLine = {
  day: '2030-01-31',
  model: 'large',
  side: 'both',
  comparisons: [],
  agrees: true,
  refused: 0,
  withoutUsage: 0,
  costNanos: 0n,
  chargedNanos: 0n,
};

/** The notes of findings in which nothing is to be said, but for some of them. */
function notes(
  lines: readonly Partial<ReconciledLine>[],
  {
    ours = {},
    theirs = {},
    more = {},
    outside = 0,
  }: { ours?: Partial<Findings['ours']>; theirs?: object; more?: Partial<Findings>; outside?: number } = {},
): readonly string[] {
  return notesOf({
    upstream: 'bought',
    isOver: true,
    theirs: { isCut: false, ...theirs },
    ours: {
      records: 9,
      upstreams: ['own', 'bought'],
      oldest: '2030-01-01T00:00:00.000Z',
      running: 0,
      lost: 0,
      passedThrough: 0,
      ...ours,
    },
    found: { outside, lines: lines.map((each) => Object.assign({}, line, each)) },
    ...more,
  } as unknown as Findings);
}

test('there are none where there is nothing to say', () => {
  expect(notes([{}])).toEqual([]);
});

test('each of them says what the figures do not have', () => {
  const said = notes(
    [
      { withoutUsage: 2, refused: 1 },
      { day: null, withoutUsage: 2, refused: 1 },
    ],
    {
      ours: { lost: 1, running: 3, passedThrough: 4 },
      theirs: { isCut: true },
      more: { isOver: false },
      outside: 5,
    },
  );
  expect(said).toEqual([
    expect.stringMatching(/^2 attempts at bought without usage/),
    expect.stringMatching(/^1 attempt at bought got a refusal/),
    'lost with their process, so that their use is not known: 1 request to bought',
    'still running: 3 requests to bought',
    'passed through, so that their use is not known: 4 requests to bought',
    'outside of the days: 5 pairs of a day and a model in the export',
    expect.stringMatching(/^the last page of the export/),
    'the last day is not over',
  ]);
});

test('the oldest record is named where the export has something from before it', () => {
  const ours = { oldest: '2030-01-31T08:00:00.000Z' };
  expect(notes([{ side: 'theirs', day: '2030-01-30' }, {}], { ours })).toEqual([
    'the oldest record was begun at 2030-01-31T08:00:00.000Z: were older ones removed (records.keep)?',
  ]);
  expect(notes([{ side: 'ours', day: '2030-01-31' }, {}], { ours })).toEqual([]);
});

test('a model that only the export has is named with the one that it may be', () => {
  const only = (model: string, side: ReconciledLine['side']) => ({ model, side });
  expect(notes([only('large-2030-01-01', 'theirs'), only('large', 'ours')])).toEqual([
    'the records have no model large-2030-01-01; if it is large: --map large-2030-01-01=large',
  ]);
  expect(notes([only('other', 'theirs'), only('large', 'both')])).toEqual([
    'the records have no model other',
  ]);
  expect(notes([only('large', 'theirs'), { ...only('large', 'ours'), day: '2030-01-30' }])).toEqual([]);
});
