import type { Budget, BudgetChanges } from '../../domain/budgets/budget.ts';
import { defaultWeight } from '../../domain/keys/api-key.ts';
import type { ApiKey, KeyChanges } from '../../domain/keys/api-key.ts';
import type { DeclaredKey } from '../../domain/keys/declared-key.ts';
import type { Limits } from '../../domain/limits/limits.ts';
import type { Row, SqlValue, Statement } from '../engine.ts';
import { raw, sql } from '../statements.ts';

/** A column of a setting: its type, its value for a key, and its value in a change, if it is plainly replaced there. */
type SettingColumn = readonly [
  name: string,
  type: 'TEXT' | 'INTEGER' | 'BIGINT',
  of: (key: Omit<DeclaredKey, 'name' | 'hash'>) => SqlValue,
  inChange: (changes: KeyChanges) => SqlValue | undefined,
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
  (changes) => changes[name],
]);

/** What changes by more than a new value. */
const patched = (): undefined => {};

/** All settings of a key, each once: what creates, declares, changes and reads keys follows from it. */
const settings: readonly SettingColumn[] = [
  ...limits,
  ['models', 'TEXT', (key) => writeList(key.models), ({ models }) => models && writeList(models)],
  [
    'allow_from',
    'TEXT',
    (key) => writeList(key.allowFrom),
    ({ allowFrom }) => allowFrom && writeList(allowFrom),
  ],
  ['tags', 'TEXT', (key) => writeTags(key.tags), ({ tags }) => tags && writeTags(tags)],
  ['expires_at', 'BIGINT', (key) => key.expiresAt, (changes) => changes.expiresAt],
  ['low_balance', 'BIGINT', (key) => key.lowBalanceNanos, (changes) => changes.lowBalanceNanos],
  ['compatibility', 'TEXT', (key) => JSON.stringify(key.compatibility), patched],
  ['budget', 'TEXT', (key) => key.budget && writeBudget(key.budget), patched],
  ['group_name', 'TEXT', (key) => key.group, (changes) => changes.group],
  ['weight', 'INTEGER', ({ weight }) => (weight === defaultWeight ? null : weight), ({ weight }) => weight],
  ['join_retries_ms', 'INTEGER', (key) => key.joinRetriesMs, (changes) => changes.joinRetriesMs],
];

/** The names of the columns of limits, and of all settings. */
export const limitList = limits.map(([name]) => name).join(', ');
export const settingNames = settings.map(([name]) => name);

/** The types of the columns of all settings, by their names. */
export const settingTypes: Readonly<Record<string, string>> = Object.fromEntries(settings);

/** The columns that `readKey` reads. */
export const columns = `id, name, created_at, ${settingNames.join(', ')}, revoked_at, declared, balance IS NOT NULL AS has_balance`;

/** The values of a key's settings, in the order of their columns. */
export function settingsOf(key: Omit<DeclaredKey, 'name' | 'hash'>): readonly SqlValue[] {
  return settings.map(([, , of]) => of(key));
}

/** A change of settings as assignments: columns that are not named are not written. */
export function assignmentsOf(changes: KeyChanges): readonly Statement[] {
  const { name, compatibility, budget } = changes;
  return [
    ...(name === undefined ? [] : [sql`name = ${name}`]),
    ...settings.flatMap(([column, , , inChange]) => {
      const value = inChange(changes);
      return value === undefined ? [] : [sql`${raw(column)} = ${value}`];
    }),
    ...(compatibility === undefined
      ? []
      : [sql`compatibility = json_patch(compatibility, ${JSON.stringify(compatibility)})`]),
    ...(budget === undefined ? [] : [changeBudget(budget)]),
  ];
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

/** The settings of a budget as a key's row has them: one flat object, so that a change of some leaves the others as they are. */
interface StoredBudget {
  readonly amount: number;
  readonly per: Budget['per'];
  readonly timeZone: string;
  readonly warnAt: readonly number[];
  readonly raise?: number;
  readonly raiseUntil?: number;
}

function writeBudget(budget: Budget): string {
  return JSON.stringify(patchOf(budget));
}

/**
 * Writes the change of a budget as an assignment. One that has all settings may follow none; any other leaves
 * a key without a budget as it is, since the budget may have been removed since it was read.
 */
function changeBudget(changes: BudgetChanges | null): Statement {
  if (changes === null) return sql`budget = ${null}`;
  const isWhole = changes.amountNanos !== undefined && changes.per !== undefined;
  const before = raw(isWhole ? `coalesce(budget, '{"timeZone":"UTC","warnAt":[]}')` : 'budget');
  return sql`budget = json_patch(${before}, ${JSON.stringify(patchOf(changes))})`;
}

/** A change as a patch of the stored object, in which `null` removes a setting. */
function patchOf({ amountNanos: amount, per, timeZone, warnAt, raise }: BudgetChanges): object {
  const raised =
    raise === undefined ? {} : { raise: raise?.nanos ?? null, raiseUntil: raise?.untilMs ?? null };
  return { amount, per, timeZone, warnAt, ...raised };
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
