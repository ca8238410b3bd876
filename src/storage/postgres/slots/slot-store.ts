import type { LimitDecision } from '../../../domain/limits.ts';
import type { EndedWait, HeldPlace, SlotStore } from '../../../domain/ports/slot-store.ts';
import { StorageError } from '../../../domain/storage-refusal.ts';
import type { Row } from '../../engine.ts';
import { lookUpRows } from '../../read-rows.ts';
import type { PostgresEngine } from '../engine.ts';
import { followLimits, forgetIdleStarts, freeLost } from './search-functions.ts';
import { leaveLine, releaseSlot, takeEndedWaits, takeSlot } from './step-functions.ts';

/** How many keys are looked through at once for old starts. */
const keysPerSearch = 1_000;

/** Keeps slots, starts and lines in PostgreSQL. `owner` is the id under which this process has its lease. */
export function createSlotStore(
  engine: Pick<PostgresEngine, 'callFunction' | 'lookUp'>,
  owner: () => string,
): SlotStore {
  return {
    owner,
    async take({ keyId, requestId, limits: { concurrency, requestsPerMinute }, mayWait }) {
      const values = [keyId, requestId, owner(), concurrency, requestsPerMinute, mayWait ? 1 : 0];
      const [row] = await engine.callFunction(takeSlot, keyId, values);
      const verdict = row?.['verdict'];
      if (verdict === 'no lease')
        throw new StorageError(
          'the lease of this process is over: it takes no requests before it has a new one',
        );
      return verdict === 'waiting' ? 'waiting' : readDecision(row);
    },
    async release(keyId, requestId) {
      return (await engine.callFunction(releaseSlot, keyId, [keyId, requestId, owner()])).map(readEndedWait);
    },
    async endedWaits() {
      return (await engine.callFunction(takeEndedWaits, owner(), [owner()])).map(readEndedWait);
    },
    async followLimits({ concurrency, requestsPerMinute }) {
      const [row] = await engine.callFunction(followLimits, owner(), [
        owner(),
        concurrency,
        requestsPerMinute,
      ]);
      return Number(row?.['row'] ?? 0);
    },
    async leave({ keyId, requestId, limits: { requestsPerMinute } }) {
      const [row] = await engine.callFunction(leaveLine, keyId, [keyId, requestId, requestsPerMinute]);
      return readDecision(row);
    },
    async held() {
      const sql = ['slots', 'waiting_requests']
        .map((table) => `SELECT key_id, request_id FROM ${table} WHERE owner = ?`)
        .join(' UNION ALL ');
      return (await lookUpRows(engine, { sql, values: [owner(), owner()] })).map(readPlace);
    },
    async freeLost() {
      const [row] = await engine.callFunction(freeLost, '', []);
      return Number(row?.['row'] ?? 0);
    },
    async forgetStarts(afterKeyId) {
      const [row] = await engine.callFunction(forgetIdleStarts, '', [afterKeyId, keysPerSearch]);
      const last = row?.['row'] ?? null;
      return last === null ? null : String(last);
    },
  };
}

function readDecision(row: Row | undefined): LimitDecision {
  const verdict = row?.['verdict'];
  if (verdict !== 'granted' && verdict !== 'concurrency' && verdict !== 'rate')
    throw new StorageError(`no decision on a slot: ${String(verdict)}`, 'unknown');
  return {
    verdict,
    inFlight: Number(row?.['in_flight']),
    remainingStarts: Number(row?.['remaining_starts']),
    resetMs: Number(row?.['reset_ms']),
  };
}

function readEndedWait(row: Row): EndedWait {
  return { requestId: String(row['request_id']), decision: readDecision(row) };
}

function readPlace(row: Row): HeldPlace {
  return { keyId: String(row['key_id']), requestId: String(row['request_id']) };
}
