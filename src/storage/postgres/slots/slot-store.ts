import type { LimitDecision } from '../../../domain/limits/limits.ts';
import type { Acquired } from '../../../domain/ports/limiter.ts';
import type { EndedWait, SlotHolder, SlotRequest, SlotStore } from '../../../domain/ports/slot-store.ts';
import type { OpenedRecord } from '../../../domain/money/consumption.ts';
import { StorageError } from '../../../domain/storage-refusal.ts';
import type { Engine, Row } from '../../engine.ts';
import { readOpening } from '../../records/open-record.ts';
import type { UnitCall } from '../../records/open-record.ts';
import type { BegunRecords } from '../../records/record-store.ts';
import { lookUpRows } from '../../statements.ts';
import { readFixedRow } from '../database-function.ts';
import type { FunctionCaller } from '../database-function.ts';
import { beginFunctions, readBeginning } from './begin-functions.ts';
import { leaveQueue, releaseSlot, restoreSlots, takeEndedWaits, takeSlot } from './slot-functions.ts';
import { followLimits, forgetIdleStarts, freeLost } from './slot-searches.ts';

/** How many keys are looked through at once for old starts. */
const keysPerSearch = 1_000;

/** How many steps free what is lost before it is left to the next search, each for some keys. */
const maxFreeingSteps = 200;

/** How many of them in a row may find nothing but keys that others have locked, as each step on a key does for a moment. */
const maxVainSteps = 3;

/**
 * Keeps slots, starts and queues in PostgreSQL. `owner` is the id under which this process has its lease; `openingOf` says how
 * the records are begun of requests that get a slot: without it none is begun with its slot.
 */
export function createSlotStore(
  engine: FunctionCaller & Pick<Engine, 'lookUp'>,
  owner: () => string,
  openingOf: BegunRecords['openingOf'] = () => null,
): SlotStore {
  return {
    owner,
    async take(request) {
      const { keyId, requestId, limits, mayWait, opening = null } = request;
      const begun =
        opening === null || mayWait ? null : await begin(engine, openingOf(opening), request, opening);
      if (begun !== null) return begun;
      const { concurrency, requestsPerMinute } = limits;
      const values = [keyId, requestId, owner(), concurrency, requestsPerMinute, mayWait ? 1 : 0];
      const [row] = await engine.callFunction(takeSlot, keyId, values, slotsOf(keyId));
      return row?.['verdict'] === 'waiting' ? 'waiting' : readDecision(row);
    },
    async release(keyId, requestId) {
      const values = [keyId, requestId, owner()];
      return (await engine.callFunction(releaseSlot, keyId, values, slotsOf(keyId))).map(readEndedWait);
    },
    async endedWaits() {
      return (await engine.callFunction(takeEndedWaits, owner(), [owner()])).map(readEndedWait);
    },
    async followLimits({ concurrency, requestsPerMinute }, groups) {
      const ofGroups = JSON.stringify(Object.fromEntries(groups));
      const values = [owner(), concurrency, requestsPerMinute, ofGroups];
      const [row] = await engine.callFunction(followLimits, owner(), values);
      return Number(row?.['row'] ?? 0);
    },
    async leave({ keyId, requestId, limits: { requestsPerMinute } }) {
      const values = [keyId, requestId, requestsPerMinute];
      const [row] = await engine.callFunction(leaveQueue, keyId, values, slotsOf(keyId));
      return readDecision(row);
    },
    async held() {
      const sql = ['slots', 'waiting_requests']
        .map((table) => `SELECT key_id, request_id FROM ${table} WHERE owner = ?`)
        .join(' UNION ALL ');
      return (await lookUpRows(engine, { sql, values: [owner(), owner()] })).map(readHolder);
    },
    async restore(keyId, requestIds) {
      const values = [keyId, owner(), JSON.stringify(requestIds)];
      const [row] = await engine.callFunction(restoreSlots, keyId, values, slotsOf(keyId));
      return Number(row?.['row'] ?? 0);
    },
    async freeLost() {
      let total = 0;
      for (let [steps, vain] = [0, 0]; steps < maxFreeingSteps && vain < maxVainSteps; steps++) {
        const [row] = await engine.callFunction(freeLost, '', []);
        const [freed, passedOver] = [Number(row?.['freed'] ?? 0), Number(row?.['passed_over'] ?? 0)];
        if (freed + passedOver === 0) break;
        total += freed;
        vain = freed === 0 ? vain + 1 : 0;
      }
      return total;
    },
    async forgetStarts(afterKeyId) {
      const [row] = await engine.callFunction(forgetIdleStarts, '', [afterKeyId, keysPerSearch]);
      const last = row?.['row'] ?? null;
      return last === null ? null : String(last);
    },
  };
}

/**
 * Takes a slot and begins a record in one call; `null` where it can't be begun before the database knows its kind. It is named by
 * itself: where another session has locked the account, for which it waits, slots are given back all the same.
 */
async function begin(
  engine: FunctionCaller,
  opening: UnitCall | null,
  { keyId, requestId, limits: { concurrency, requestsPerMinute } }: SlotRequest,
  record: OpenedRecord,
): Promise<Acquired | null> {
  const called = opening === null ? undefined : beginFunctions.get(opening.unit.name);
  if (opening === null || called === undefined) return null;
  const values = [requestId, concurrency, requestsPerMinute, ...opening.values];
  const row = readFixedRow(await engine.callFunction(called, keyId, values, `beginnings of ${keyId}`));
  if (row === null) return null;
  const { verdict, opened, ...decision } = readBeginning(row);
  const limited = { verdict: decided(verdict), ...decision };
  return limited.verdict === 'granted' ? { ...limited, reservation: readOpening(record, opened) } : limited;
}

/** What those functions lock that work on one key. */
function slotsOf(keyId: string): string {
  return `slots of ${keyId}`;
}

function readDecision(row: Row | undefined): LimitDecision {
  return {
    verdict: decided(row?.['verdict']),
    inFlight: Number(row?.['in_flight']),
    remainingStarts: Number(row?.['remaining_starts']),
    resetMs: Number(row?.['reset_ms']),
  };
}

/** A verdict on a slot. Throws for one that decides nothing. */
function decided(verdict: unknown): LimitDecision['verdict'] {
  if (verdict === 'granted' || verdict === 'concurrency' || verdict === 'rate') return verdict;
  if (verdict === 'no lease')
    throw new StorageError('the lease of this process is over: it takes no requests before it has a new one');
  throw new StorageError(`no decision on a slot: ${String(verdict)}`, 'unknown');
}

function readEndedWait(row: Row): EndedWait {
  return { requestId: String(row['request_id']), decision: readDecision(row) };
}

function readHolder(row: Row): SlotHolder {
  return { keyId: String(row['key_id']), requestId: String(row['request_id']) };
}
