import { digest } from '../../shared/digest.ts';
import { formatDuration } from '../../shared/duration.ts';
import { formatUsd } from '../../shared/money.ts';
import type { Budget } from '../budgets/budget.ts';
import type { KeyTerms } from '../keys/api-key.ts';

/** A field before and after a change, as its author would write it; `null` where it is not set. */
export interface FieldChange<Text extends string = string> {
  readonly field: string;
  readonly before: Text | null;
  readonly after: Text | null;
}

/** Fields by their paths, such as `budget.amount`. */
export type Fields = ReadonlyMap<string, string>;

/** The longest value that is told whole, in characters, and the most fields of one change. */
const maxValueLength = 500;
const maxFields = 200;

/** How many hexadecimal digits of its hash stand for a secret: enough to see whether it is another one. */
const fingerprintLength = 12;

/** What stands for a secret. */
export function fingerprintOf(secret: string): string {
  return fingerprintOfHash(digest(secret));
}

/** The same for a secret of which the SHA-256 is stored. */
export function fingerprintOfHash(hash: string): string {
  return `sha256:${hash.slice(0, fingerprintLength)}`;
}

/** The fields of settings, at any depth. A list is one field; what is absent, `null` or an empty list is none. */
export function fieldsOf(settings: object): Fields {
  return new Map(leavesOf(settings, ''));
}

function* leavesOf(value: unknown, path: string): Generator<readonly [field: string, value: string]> {
  if (value === null || value === undefined || (Array.isArray(value) && value.length === 0)) return;
  const isValue = typeof value !== 'object' || (Array.isArray(value) && typeof value[0] !== 'object');
  if (isValue) yield [path, shorten(typeof value === 'string' ? value : JSON.stringify(value))];
  else
    for (const [name, part] of Object.entries(value))
      yield* leavesOf(part, path === '' ? name : `${path}.${name}`);
}

/** A value that is too long to be told, cut: two that differ only behind the cut differ in the fingerprint. */
function shorten(value: string): string {
  if (value.length <= maxValueLength) return value.toWellFormed();
  return `${value.slice(0, maxValueLength).toWellFormed()}… ${fingerprintOf(value)}`;
}

/** The fields that differ, by their names. */
export function differencesOf(before: Fields, after: Fields): readonly FieldChange[] {
  const names = [...new Set([...before.keys(), ...after.keys()])].toSorted();
  const changed = names.filter((name) => before.get(name) !== after.get(name));
  const told = changed.slice(0, maxFields).map((field): FieldChange => {
    return { field, before: before.get(field) ?? null, after: after.get(field) ?? null };
  });
  const more = changed.length - told.length;
  return more === 0 ? told : [...told, { field: `${more} more fields`, before: null, after: null }];
}

/** Behind the name of a field whose value waits for the next start. */
const waits = ' (from the next start on)';

/**
 * The fields of settings that replaced those of the start: one that only a start changes has its value of then, beside the
 * one that it gets at the next start.
 */
export function fieldsInForce(start: Fields, next: Fields, isFixed: (field: string) => boolean): Fields {
  const inForce = new Map(next);
  for (const field of [...start.keys(), ...next.keys()].filter(isFixed)) {
    const [before, after = 'none'] = [start.get(field), next.get(field)];
    if (before === next.get(field)) continue;
    if (before === undefined) inForce.delete(field);
    else inForce.set(field, before);
    inForce.set(field + waits, after);
  }
  return inForce;
}

/** Changes without the end of a wait where the field has changed by then, which says it. */
export function withoutEndedWaits(changes: readonly FieldChange[]): readonly FieldChange[] {
  const ended = new Set(changes.map(({ field }) => field + waits));
  return changes.filter(({ field, after }) => after !== null || !ended.has(field));
}

/** No fields, as of what is not there yet. */
export const noFields: Fields = new Map();

/** The fields of a key as an operator writes them. `hash` is that of its secret; `more` are fields beside its terms. */
export function fieldsOfKey(
  { name, ...key }: KeyTerms & { readonly name: string },
  hash: string,
  more: Readonly<Record<string, string>> = {},
): Fields {
  const { limits, models, allowFrom, tags, expiresAt, group, weight, compatibility } = key;
  const { queueWaitMs, ...counts } = limits;
  return fieldsOf({
    name,
    secret: fingerprintOfHash(hash),
    ...counts,
    queueWait: queueWaitMs === undefined ? null : formatDuration(queueWaitMs),
    models,
    allowFrom,
    tags,
    expiresAt: timeOf(expiresAt),
    lowBalance: key.lowBalanceNanos === null ? null : formatUsd(key.lowBalanceNanos),
    budget: key.budget === null ? null : fieldsOfBudget(key.budget),
    group,
    weight,
    joinRetries: key.joinRetriesMs === null ? null : formatDuration(key.joinRetriesMs),
    compatibility,
    ...more,
  });
}

function fieldsOfBudget({ amountNanos, warnAt, raise, ...calendar }: Budget): object {
  return {
    ...calendar,
    amount: formatUsd(amountNanos),
    warnAt: warnAt.map((part) => part / 1_000),
    raise: raise && { amount: formatUsd(raise.nanos), until: timeOf(raise.untilMs) },
  };
}

function timeOf(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString();
}
