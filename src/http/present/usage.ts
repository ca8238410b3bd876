import { formatUsd } from '../../shared/money.ts';
import type { UsageGroup, UsageRow } from '../../domain/ports/usage.ts';
import type { CsvColumn } from './csv.ts';
import { isoTime } from './iso-time.ts';

/** The sums of one group of requests as JSON. Of the groups it has those that were asked for. */
export interface PresentedUsage {
  /** When the hour begins, in ISO 8601; a day is `2030-01-31`, and a month `2030-01`, all in UTC. */
  readonly hour?: string;
  readonly day?: string;
  readonly month?: string;
  readonly key_id?: string;
  /** `null` for a key that is not stored any more. */
  readonly key_name?: string | null;
  /** `null` for the requests of keys without a group. */
  readonly group?: string | null;
  readonly model?: string;
  readonly upstream?: string;
  readonly outcome?: string;
  /** `null` for the requests without a tag. */
  readonly tag?: string | null;
  readonly requests: number;
  readonly input_tokens: number;
  readonly cached_input_tokens: number;
  readonly cache_write_tokens: number;
  readonly output_tokens: number;
  readonly reasoning_tokens: number;
  /** In USD. */
  readonly charge: string;
}

/** A row of usage, and the name of its key. */
export interface NamedUsage extends UsageRow {
  readonly keyName: string | null;
}

/** How much of a time in ISO 8601 a day and a month are. */
const dayLength = 10;
const monthLength = 7;

const startOf = ({ startMs = 0 }: UsageRow): string => isoTime(startMs);

/** The columns of each group, by the names that it has in JSON and in CSV. */
const groupColumns: Readonly<Record<UsageGroup, readonly CsvColumn<NamedUsage>[]>> = {
  hour: [['hour', startOf]],
  day: [['day', (row) => startOf(row).slice(0, dayLength)]],
  month: [['month', (row) => startOf(row).slice(0, monthLength)]],
  key: [
    ['key_id', ({ keyId = '' }) => keyId],
    ['key_name', ({ keyName }) => keyName],
  ],
  group: [['group', ({ group = null }) => group]],
  model: [['model', ({ model = '' }) => model]],
  upstream: [['upstream', ({ upstream = '' }) => upstream]],
  outcome: [['outcome', ({ outcome = '' }) => outcome]],
  tag: [['tag', ({ tag = null }) => tag]],
};

const sumColumns: readonly CsvColumn<NamedUsage>[] = [
  ['requests', ({ requests }) => requests],
  ['input_tokens', ({ inputTokens }) => inputTokens],
  ['cached_input_tokens', ({ cachedInputTokens }) => cachedInputTokens],
  ['cache_write_tokens', ({ cacheWriteTokens }) => cacheWriteTokens],
  ['output_tokens', ({ outputTokens }) => outputTokens],
  ['reasoning_tokens', ({ reasoningTokens }) => reasoningTokens],
  ['charge', ({ chargeNanos }) => formatUsd(chargeNanos)],
];

/** The columns of usage by some groups. */
export function usageColumns(by: readonly UsageGroup[]): readonly CsvColumn<NamedUsage>[] {
  return [...by.flatMap((group) => groupColumns[group]), ...sumColumns];
}

/** A row of usage as JSON, in the order of its columns. */
export function presentUsage(row: NamedUsage, columns: ReturnType<typeof usageColumns>): PresentedUsage {
  return Object.fromEntries(columns.map(([name, read]) => [name, read(row)])) as unknown as PresentedUsage;
}
