import { StorageError, storageUnavailable } from '../domain/storage-refusal.ts';
import { keyEntry } from '../domain/audit/audit-line.ts';
import type { Actor } from '../domain/audit/audit-line.ts';
import { idIn } from '../domain/audit/safe-text.ts';
import { createKeyOperations } from '../http/admin/keys.ts';
import type {
  KeyQuery,
  ChangedKey,
  NewKey,
  Payment,
  PresentedAccount,
  PresentedKey,
  Rotation,
} from '../http/admin/keys.ts';
import { listGroups } from '../http/admin/groups.ts';
import type { AdminPorts } from '../http/admin/router.ts';
import {
  cancelRequest,
  presentRecordPage,
  readRecord,
  readRecordPage,
  readRunning,
} from '../http/admin/records.ts';
import type { PresentedRunning, RecordQuery } from '../http/admin/records.ts';
import { readStatusAs } from '../http/admin/status.ts';
import type { StatusQuery } from '../http/admin/status.ts';
import type { PresentedList } from '../http/present/list.ts';
import type { PresentedStatus } from '../http/present/status.ts';
import { presentUsagePage, readUsage } from '../http/usage.ts';
import type { UsageInput } from '../http/usage.ts';
import { gatewayClosed } from '../http/answers/prepare-answers.ts';
import type { presentGroup } from '../http/present/key.ts';
import type { PresentedRecord } from '../http/present/record.ts';
import type { PresentedUsage } from '../http/present/usage.ts';
import { GatewayError, isRefusal } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { searchableId } from '../shared/storable-text.ts';

/** The input of `keys.create`: durations such as `5s`, USD as decimal strings, times in ISO 8601. */
export type KeySettings = NewKey;

/** The input of `keys.update`: `null` removes a setting, and a missing field leaves it as it is. */
export type KeyChanges = ChangedKey;

/** The input of `keys.rotate`. */
export type KeyRotation = Rotation;

/** The input of `keys.credit`: USD as a decimal string. */
export type KeyPayment = Payment;

export type { KeyQuery, RecordQuery };

/** The input of `usage`: groups separated by commas, such as `day,model`, and times on whole hours. */
export type UsageQuery = UsageInput;

/** The sums of one group of requests, as `/admin/usage` shows them. */
export type UsageSums = PresentedUsage;

/** A key as `/admin/keys` shows it: defaults filled in, times in ISO 8601, USD as decimal strings. */
export type Key = PresentedKey;

/** A key just made or rotated; `key` is what clients present, and is returned only here. */
export type IssuedKey = Key & { readonly key: string };

/** The account of a key after a payment; `booked` is false for a reference that was booked before. */
export type CreditResult = PresentedAccount & { readonly id: string; readonly booked: boolean };

/** A group of keys with what they do and have spent together, as `/admin/groups` shows it. */
export type KeyGroup = ReturnType<typeof presentGroup>;

/** The record of one request, as `/admin/records` shows it. */
export type UsageRecord = PresentedRecord;

/** A request in progress, as `/admin/in-flight` shows it. */
export type RunningRequest = PresentedRunning;

/** What a gateway does now, as `/admin/status` shows it. */
export type GatewayStatus = PresentedStatus;

export type { StatusQuery };

/** A page of a list; `next` is the `before` (of usage the `after`) of the following page, and `null` on the last one. */
export type Page<Entry> = PresentedList<Entry>;

/** The keys of a gateway. Methods reject with `GatewayError`: for example `key_not_found`, or `invalid_value`. */
export interface Keys {
  create(settings: KeySettings): Promise<IssuedKey>;
  /** Newest first. */
  list(query?: KeyQuery): Promise<Page<Key>>;
  get(id: string): Promise<Key>;
  update(id: string, changes: KeyChanges): Promise<Key>;
  /** Revokes a key: none of its requests begins from then on; those in progress go on to their end. */
  revoke(id: string): Promise<Key>;
  /** Makes a new secret; the old one stays valid for `grace`, by default not at all. */
  rotate(id: string, options?: KeyRotation): Promise<IssuedKey>;
  /** Books a payment; the same reference is booked once. */
  credit(id: string, payment: KeyPayment): Promise<CreditResult>;
  /** The groups of the config that keys may belong to, by name. */
  groups(): Promise<Page<KeyGroup>>;
}

/** The usage record of a gateway. Methods reject with `GatewayError`. */
export interface Records {
  /** Newest first. */
  list(query?: RecordQuery): Promise<Page<UsageRecord>>;
  /** Rejects with `request_not_found` for a request that was never recorded. */
  get(requestId: string): Promise<UsageRecord>;
}

/** What an operator does, from code: the results are the JSON of the admin API. */
export interface Management {
  readonly keys: Keys;
  readonly records: Records;
  /** The sums of all requests that have ended. A page may have fewer rows than asked for, and not be the last. */
  usage(query?: UsageQuery): Promise<Page<UsageSums>>;
  /** What runs now and why it waits, what ended in the last minute, upstreams, and the books. */
  status(query?: StatusQuery): Promise<GatewayStatus>;
  /** The requests in progress, in the order of their arrival. */
  inFlight(): Promise<Page<RunningRequest>>;
  /** Cancels a request in progress; rejects with `request_not_found` if it is not running. */
  cancel(requestId: string): Promise<{ readonly request_id: string; readonly cancelled: true }>;
}

/** An app that does from code what operators do. */
const byCode: Actor = { way: 'code', name: null, address: null };

/** Builds the methods over the config in force, which has the defaults of keys. All reject after the gateway's end. */
export function createManagement(current: () => AdminPorts, isClosed: () => boolean): Management {
  const administration = () => {
    if (isClosed()) throw new GatewayError(gatewayClosed());
    return current();
  };
  const keys = () => createKeyOperations(administration().keys);
  const records = () => administration().records;
  return {
    keys: {
      create: async (settings) => orThrow(keys().create(byCode, settings)),
      list: async (query = {}) => orThrow(keys().list(query)),
      get: async (id) => orThrow(keys().get(searchableId(id))),
      update: async (id, changes) => orThrow(keys().update(byCode, searchableId(id), changes)),
      revoke: async (id) => orThrow(keys().revoke(byCode, searchableId(id))),
      rotate: async (id, options = {}) => orThrow(keys().rotate(byCode, searchableId(id), options)),
      credit: async (id, payment) => orThrow(keys().credit(byCode, searchableId(id), payment)),
      groups: async () => orThrow(listGroups(administration().keys)),
    },
    records: {
      async list(query = {}) {
        return presentRecordPage(await orThrow(readRecordPage(query, records())));
      },
      get: async (requestId) => orThrow(readRecord(searchableId(requestId), records())),
    },
    usage: async (query = {}) => presentUsagePage(await orThrow(readUsage(query, administration().usage))),
    status: async (query = {}) => orThrow(readStatusAs(query, administration().status)),
    inFlight: async () => readRunning(records()),
    async cancel(requestId) {
      const { records: running, note } = administration();
      const cancelled = await orThrow(cancelRequest(searchableId(requestId), running));
      note(keyEntry(byCode, 'request.cancel', null, [], idIn(cancelled.request_id)));
      return cancelled;
    },
  };
}

/** Turns a refusal, and a database that is away, into the error that a caller catches. */
async function orThrow<Result extends object>(work: Promise<Result | Refusal>): Promise<Result> {
  const result = await work.catch((error: unknown) => {
    if (error instanceof StorageError) throw new GatewayError(storageUnavailable(), { cause: error });
    throw error;
  });
  if (isRefusal(result)) throw new GatewayError(result);
  return result;
}
