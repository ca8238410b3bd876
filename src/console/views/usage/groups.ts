import type { PresentedUsage } from '../../../http/present/usage.ts';
import { asWords, shortId } from '../../widgets/format.ts';

export type UsageRow = PresentedUsage;

/** What usage is grouped by. */
export const groupNames = ['key', 'group', 'model', 'upstream', 'outcome', 'tag'] as const;

export type GroupName = (typeof groupNames)[number];

/** How no tag or group is written in addresses: both begin with a letter or a digit, and an empty value is left out there. */
export const none = '-';

interface Group {
  readonly title: string;
  readonly plural: string;
  /** The group that tells more of one row of this one. */
  readonly next: GroupName;
  /** What a row is found by in addresses; `null` for what was spent before usage was counted, which no filter finds. */
  readonly valueOf: (row: UsageRow) => string | null;
  readonly nameOf: (row: UsageRow) => string;
}

const uncounted = 'before usage was counted';

export const groups: Readonly<Record<GroupName, Group>> = {
  key: {
    title: 'Key',
    plural: 'keys',
    next: 'model',
    valueOf: ({ key_id: id }) => id || null,
    nameOf: ({ key_id: id = '', key_name: name }) => name ?? shortId(id),
  },
  group: {
    title: 'Group of keys',
    plural: 'groups of keys',
    next: 'key',
    valueOf: ({ group }) => group ?? none,
    nameOf: ({ group }) => group ?? 'without a group',
  },
  model: {
    title: 'Model',
    plural: 'models',
    next: 'key',
    valueOf: ({ model }) => model || null,
    nameOf: ({ model }) => model || uncounted,
  },
  upstream: {
    title: 'Upstream',
    plural: 'upstreams',
    next: 'model',
    valueOf: ({ upstream }) => upstream || null,
    nameOf: ({ upstream }) => upstream || uncounted,
  },
  outcome: {
    title: 'Outcome',
    plural: 'outcomes',
    next: 'upstream',
    valueOf: ({ outcome }) => outcome || null,
    nameOf: ({ outcome }) => (outcome ? asWords(outcome) : uncounted),
  },
  tag: {
    title: 'Tag',
    plural: 'tags',
    next: 'key',
    valueOf: ({ tag }) => tag ?? none,
    nameOf: ({ tag }) => tag ?? 'without a tag',
  },
};

/** What is counted of the requests of a group. */
export const measureNames = ['charge', 'requests', 'output_tokens', 'input_tokens'] as const;

export type MeasureName = (typeof measureNames)[number];

export const measureTitles: Readonly<Record<MeasureName, string>> = {
  charge: 'Charge',
  requests: 'Requests',
  output_tokens: 'Output tokens',
  input_tokens: 'Input tokens',
};

/** A count as a number, for charts and for the order of rows; tables show the exact amount. */
export function measureOf(row: UsageRow, name: MeasureName): number {
  return Number(row[name]);
}

/** The groups with the most first. */
export function sortGroups(rows: readonly UsageRow[], name: MeasureName): readonly UsageRow[] {
  return rows.toSorted(
    (one, other) => measureOf(other, name) - measureOf(one, name) || other.requests - one.requests,
  );
}
