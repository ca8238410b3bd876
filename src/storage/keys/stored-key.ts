import type { Budget } from '../../domain/budgets/budget.ts';
import { defaultWeight } from '../../domain/keys/api-key.ts';
import type { ApiKey, KeyTerms } from '../../domain/keys/api-key.ts';
import type { Limits } from '../../domain/limits/limits.ts';
import type { Row, SqlValue, Statement } from '../engine.ts';
import { joined, raw, sql } from '../statements.ts';

/** A column of a setting: its type, and its value for a key. */
type SettingColumn = readonly [
  name: string,
  type: 'TEXT' | 'INTEGER' | 'BIGINT',
  of: (key: KeyTerms) => SqlValue,
];

/** The columns of a key's own limits. */
const limitColumns = {
  concurrency: 'concurrency',
  requestsPerMinute: 'requests_per_minute',
  queueWaitMs: 'queue_wait_ms',
  tokensPerMinute: 'tokens_per_minute',
  tokensPerDay: 'tokens_per_day',
} as const satisfies Record<keyof Limits, string>;

const limitNames = Object.keys(limitColumns) as (keyof Limits)[];

const limits = limitNames.map((name): SettingColumn => [
  limitColumns[name],
  'INTEGER',
  (key) => key.limits[name] ?? null,
]);

/** All settings of a key, each once: what creates, declares, changes and reads keys follows from it. */
const settings: readonly SettingColumn[] = [
  ...limits,
  ['models', 'TEXT', (key) => writeList(key.models)],
  ['allow_from', 'TEXT', (key) => writeList(key.allowFrom)],
  ['tags', 'TEXT', (key) => writeTags(key.tags)],
  ['expires_at', 'BIGINT', (key) => key.expiresAt],
  ['low_balance', 'BIGINT', (key) => key.lowBalanceNanos],
  ['compatibility', 'TEXT', (key) => JSON.stringify(key.compatibility)],
  ['budget', 'TEXT', (key) => key.budget && writeBudget(key.budget)],
  ['group_name', 'TEXT', (key) => key.group],
  ['weight', 'INTEGER', ({ weight }) => (weight === defaultWeight ? null : weight)],
  ['join_retries_ms', 'INTEGER', (key) => key.joinRetriesMs],
];

/** The names of the columns of limits, and of all settings. */
export const limitList = limits.map(([name]) => name).join(', ');
export const settingNames = settings.map(([name]) => name);

/** The types of the columns of all settings, by their names. */
export const settingTypes: Readonly<Record<string, string>> = Object.fromEntries(settings);

/** The columns that `readKey` reads. */
export const columns = `id, name, created_at, ${settingNames.join(', ')}, revoked_at, declared, balance IS NOT NULL AS has_balance`;

/** The values of a key's settings, in the order of their columns. */
export function settingsOf(key: KeyTerms): readonly SqlValue[] {
  return settings.map(([, , of]) => of(key));
}

/** A key's name and settings as assignments. */
export function assignmentsOf(key: ApiKey): readonly Statement[] {
  const values = settingsOf(key);
  return [
    sql`name = ${key.name}`,
    ...settingNames.map((name, at) => sql`${raw(name)} = ${values[at] ?? null}`),
  ];
}

/** The condition on a stored key that it is as a row has it. A declared key never is: it is changed in the config alone. */
export function isUnchanged(row: Row): Statement {
  const same = ['id', 'name', 'hash', 'revoked_at', ...settingNames].map(
    (name) => sql`${raw(name)} IS NOT DISTINCT FROM ${row[name] ?? null}`,
  );
  return sql`${joined(same, ' AND ')} AND declared = 0`;
}

/** The limits that a key has of its own. */
export function readLimits(row: Row): Partial<Limits> {
  return Object.fromEntries(
    limitNames.flatMap((name) => {
      const value = row[limitColumns[name]];
      return value === null ? [] : [[name, Number(value)]];
    }),
  );
}

export function readKey(row: Row): ApiKey {
  const ends = [row['expires_at'], row['valid_until']].filter((time) => typeof time === 'number');
  return {
    id: String(row['id']),
    name: String(row['name']),
    createdAtMs: Number(row['created_at']),
    limits: readLimits(row),
    models: readList(row['models']),
    allowFrom: readList(row['allow_from']),
    tags: readList(row['tags']) ?? [],
    expiresAt: ends.length === 0 ? null : Math.min(...ends),
    lowBalanceNanos: row['low_balance'] === null ? null : Number(row['low_balance']),
    revokedAtMs: row['revoked_at'] === null ? null : Number(row['revoked_at']),
    hasBalance: row['has_balance'] === 1,
    compatibility: JSON.parse(String(row['compatibility'])) as ApiKey['compatibility'],
    budget: readBudget(row['budget']),
    group: row['group_name'] === null ? null : String(row['group_name']),
    weight: row['weight'] === null ? defaultWeight : Number(row['weight']),
    joinRetriesMs: row['join_retries_ms'] === null ? null : Number(row['join_retries_ms']),
    isDeclared: row['declared'] === 1,
  };
}

/** A list as it is stored; `null` for a key without the restriction. */
function writeList(list: readonly string[] | null): string | null {
  return list === null ? null : JSON.stringify(list);
}

function readList(stored: Row[string] | undefined): readonly string[] | null {
  return stored === null || stored === undefined ? null : (JSON.parse(String(stored)) as string[]);
}

/** The tags of a key as they are stored: as before there were any for a key without. */
function writeTags(tags: readonly string[]): string | null {
  return writeList(tags.length === 0 ? null : tags);
}

/** The settings of a budget as a key's row has them: one flat object. */
interface StoredBudget {
  readonly amount: number;
  readonly per: Budget['per'];
  readonly timeZone: string;
  readonly warnAt: readonly number[];
  readonly raise?: number;
  readonly raiseUntil?: number;
}

function writeBudget({ amountNanos: amount, raise, ...others }: Budget): string {
  const raised = raise === null ? {} : { raise: raise.nanos, raiseUntil: raise.untilMs };
  return JSON.stringify({ amount, ...others, ...raised } satisfies StoredBudget);
}

function readBudget(stored: Row[string] | undefined): Budget | null {
  if (stored === null || stored === undefined) return null;
  const { amount, per, timeZone, warnAt, raise, raiseUntil } = JSON.parse(String(stored)) as StoredBudget;
  const isRaised = typeof raise === 'number' && typeof raiseUntil === 'number';
  return {
    amountNanos: amount,
    per,
    timeZone,
    warnAt,
    raise: isRaised ? { nanos: raise, untilMs: raiseUntil } : null,
  };
}
