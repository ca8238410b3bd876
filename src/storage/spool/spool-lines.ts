import type { CountedBudget } from '../../domain/budgets/budget.ts';
import type { RecordBeginning, SettledRecord } from '../../domain/money/consumption.ts';
import type { Price } from '../../domain/money/pricing.ts';
import { checksumLength, checksumOf } from '../../shared/checksum.ts';
import { parseJson } from '../../shared/parse-json.ts';

/** Writes a settlement as one line: a checksum, a space, and JSON. */
export function writeSpoolLine(record: SettledRecord): string {
  const json = JSON.stringify({ ...record, begun: record.begun && writeBeginning(record.begun) });
  return `${checksumOf(json)} ${json}\n`;
}

/**
 * How a record was begun, also as the version before groups reads it, which may take over a spool beside PostgreSQL: without
 * the budget of the key as it knows it, it would not count the charge, nor give the hold back.
 */
function writeBeginning(begun: RecordBeginning): SpooledBeginning {
  const ofKey = begun.budgets?.find(({ owner }) => owner === 'key');
  if (ofKey === undefined) return begun;
  const { id, startMs, endMs, holdNanos, levels } = ofKey;
  const levelNanos = levels.map(({ nanos }) => nanos);
  return { ...begun, budget: { id, startMs, endMs, holdNanos, levelNanos } };
}

/**
 * Reads the settlements in some lines, in order, and counts the lines that are torn. Throws for a line that is intact
 * and holds no settlement as this version knows them: it would be lost if it were passed over.
 */
export function readSpoolLines(text: string): {
  readonly records: readonly SettledRecord[];
  readonly damaged: number;
} {
  const lines = text.split('\n').filter((line) => line !== '');
  const records = lines.map(readLine).filter((record) => record !== null);
  return { records, damaged: lines.length - records.length };
}

function readLine(line: string): SettledRecord | null {
  const json = line.slice(checksumLength + 1);
  if (line.slice(0, checksumLength) !== checksumOf(json)) return null;
  const record = parseJson(json);
  if (isSettledRecord(record)) return { ...record, begun: readBeginning(record.begun ?? null) };
  throw new Error(
    'the spool has a settlement that this version can not read: start the version that wrote it once, which settles it',
  );
}

/** How a record was begun, as a spool has it: earlier versions knew of no tags or groups, and of one budget with fewer fields. */
type SpooledBeginning = Omit<RecordBeginning, 'tag' | 'group'> &
  Partial<Pick<RecordBeginning, 'tag' | 'group'>> & { readonly budget?: EarlierBudget };

interface EarlierBudget extends Pick<CountedBudget, 'id' | 'startMs' | 'endMs' | 'holdNanos'> {
  readonly levelNanos: readonly number[];
}

/** A settlement as a spool has it: earlier versions did not write how its record was begun. */
interface SpooledRecord extends Omit<SettledRecord, 'begun'> {
  readonly begun?: SpooledBeginning | null;
}

function readBeginning(begun: SpooledBeginning | null): RecordBeginning | null {
  if (begun === null) return null;
  const { budget, ...known } = begun;
  const budgets = begun.budgets ?? (budget && [readEarlierBudget(budget)]);
  const { tag = null, group = null } = begun;
  return { ...known, tag, group, ...(budgets === undefined ? {} : { budgets }) };
}

/** The budget of an earlier version: what it says of levels is left to the next charge. */
function readEarlierBudget({ id, startMs, endMs, holdNanos }: EarlierBudget): CountedBudget {
  return { id, owner: 'key', startMs, endMs, holdNanos, limitNanos: 0, levels: [] };
}

/** Whether a value has the fields of a settlement: a value of another type would fail every time it is offered. */
function isSettledRecord(value: unknown): value is SpooledRecord {
  if (typeof value !== 'object' || value === null) return false;
  const record = value as Partial<Record<keyof SettledRecord, unknown>>;
  return (
    typeof record.requestId === 'string' &&
    (record.begun === undefined || record.begun === null || isBeginning(record.begun)) &&
    typeof record.outcome === 'string' &&
    typeof record.usageSource === 'string' &&
    Number.isSafeInteger(record.status) &&
    Number.isSafeInteger(record.chargeNanos) &&
    Number(record.chargeNanos) >= 0 &&
    typeof record.totalMs === 'number' &&
    Array.isArray(record.attempts) &&
    typeof record.usage === 'object' &&
    (record.upstream === null || typeof record.upstream === 'string') &&
    (record.firstTextMs === null || typeof record.firstTextMs === 'number')
  );
}

function isBeginning(value: unknown): value is SpooledBeginning {
  if (typeof value !== 'object' || value === null) return false;
  const begun = value as Partial<Record<keyof RecordBeginning, unknown>>;
  return (
    [begun.keyId, begun.protocol, begun.mode, begun.model, begun.upstream].every(
      (text) => typeof text === 'string',
    ) &&
    [begun.tag ?? '', begun.group ?? ''].every((text) => typeof text === 'string') &&
    [begun.createdAtMs, begun.queuedMs, begun.holdNanos].every((number) => typeof number === 'number') &&
    typeof begun.price === 'object' &&
    begun.price !== null &&
    priceNames.every((name) => Number.isSafeInteger((begun.price as Partial<Price>)[name]))
  );
}

const priceNames = ['input', 'cachedInput', 'cacheWrite', 'output', 'request'] as const;
