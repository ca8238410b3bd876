import type { RecordBeginning, SettledRecord } from '../../domain/money/consumption.ts';
import type { ClaimEnd } from '../../domain/ports/claims.ts';
import type { Price } from '../../domain/money/pricing.ts';
import { checksumLength, checksumOf } from '../../shared/checksum.ts';
import { parseJson } from '../../shared/parse-json.ts';
import { findRequestKey } from '../records/request-key.ts';

/** The form of a line, which is in it. A settlement in another one is not read: what is meant by other fields would be lost. */
const form = 1;

/** That of a settlement with a claim, which a version that knows of none would make without it. */
const claimedForm = 2;

/** Writes a settlement as one line: a checksum, a space, and its form and itself as JSON. */
export function writeSpoolLine(record: SettledRecord): string {
  const json = JSON.stringify([record.claim === undefined ? form : claimedForm, record]);
  return `${checksumOf(json)} ${json}\n`;
}

/** A spool has an intact line with no settlement as this version writes them. */
export class UnknownLineError extends Error {
  constructor(path: string) {
    super(
      `the spool of settlements ${path} has one that this version can not read: start the version that wrote it once, which settles it`,
    );
    this.name = 'UnknownLineError';
  }
}

/**
 * Reads the settlements in the lines of a file, in order, and counts the lines that are torn. Throws `UnknownLineError` for a
 * line that is intact and in another form: a settlement would be lost if it were passed over.
 */
export function readSpoolLines(
  text: string,
  path: string,
): {
  readonly records: readonly SettledRecord[];
  readonly damaged: number;
} {
  const lines = text.split('\n').filter((line) => line !== '');
  const records = lines.map((line) => readLine(line, path)).filter((record) => record !== null);
  return { records, damaged: lines.length - records.length };
}

function readLine(line: string, path: string): SettledRecord | null {
  const json = line.slice(checksumLength + 1);
  if (line.slice(0, checksumLength) !== checksumOf(json)) return null;
  const read = parseJson(json);
  const [found, record] = Array.isArray(read) ? (read as readonly unknown[]) : [];
  if (isSettledRecord(record) && found === (record.claim === undefined ? form : claimedForm)) return record;
  throw new UnknownLineError(path);
}

/** Whether a value has the fields of a settlement: a value of another type would fail every time it is offered. */
function isSettledRecord(value: unknown): value is SettledRecord {
  if (typeof value !== 'object' || value === null) return false;
  const record = value as Partial<Record<keyof SettledRecord, unknown>>;
  return (
    typeof record.requestId === 'string' &&
    findRequestKey(record.requestId) !== null &&
    isBeginning(record.begun) &&
    typeof record.outcome === 'string' &&
    typeof record.usageSource === 'string' &&
    Number.isSafeInteger(record.status) &&
    Number.isSafeInteger(record.chargeNanos) &&
    Number(record.chargeNanos) >= 0 &&
    typeof record.totalMs === 'number' &&
    Array.isArray(record.attempts) &&
    typeof record.usage === 'object' &&
    (record.upstream === null || typeof record.upstream === 'string') &&
    (record.firstTextMs === null || typeof record.firstTextMs === 'number') &&
    (record.claim === undefined || isClaimEnd(record.claim))
  );
}

function isClaimEnd(value: unknown): value is ClaimEnd {
  if (typeof value !== 'object' || value === null) return false;
  const { name, isFreed } = value as Partial<Record<keyof ClaimEnd, unknown>>;
  return typeof name === 'string' && typeof isFreed === 'boolean';
}

function isBeginning(value: unknown): value is RecordBeginning {
  if (typeof value !== 'object' || value === null) return false;
  const begun = value as Partial<Record<keyof RecordBeginning, unknown>>;
  return (
    [begun.keyId, begun.protocol, begun.mode, begun.model, begun.upstream].every(
      (text) => typeof text === 'string',
    ) &&
    [begun.tag, begun.group].every((text) => text === null || typeof text === 'string') &&
    [begun.queuedMs, begun.holdNanos].every((number) => typeof number === 'number') &&
    (begun.budgets === undefined || Array.isArray(begun.budgets)) &&
    typeof begun.price === 'object' &&
    begun.price !== null &&
    priceNames.every((name) => Number.isSafeInteger((begun.price as Partial<Price>)[name]))
  );
}

const priceNames = ['input', 'cachedInput', 'cacheWrite', 'output', 'request'] as const;
