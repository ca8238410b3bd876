import type { Accounts } from '../domain/ports/accounts.ts';
import type { Claims } from '../domain/ports/claims.ts';
import type { DeclarationStore, KeyLookUp, KeyStore } from '../domain/ports/key-store.ts';
import type { Latencies } from '../domain/ports/latencies.ts';
import type { RecordLeases } from '../domain/ports/leases.ts';
import type { RecordPages, OpenRecords, OrderedRecords } from '../domain/ports/records.ts';
import type { NextId } from '../domain/ports/clock.ts';
import type { Engine } from './engine.ts';
import { createClaims } from './claims.ts';
import { createDeclarationStore } from './keys/declarations.ts';
import { createKeyStore } from './keys/key-store.ts';
import { createLeases } from './leases.ts';
import { createAccounts } from './ledger/accounts.ts';
import { createLatencies } from './records/count-latencies.ts';
import { createRecordPages } from './records/record-pages.ts';
import { createRecordStore } from './records/record-store.ts';
import type { BegunRecords, RecordStoreOptions } from './records/record-store.ts';

/** Everything that the service stores. */
export interface Store
  extends
    KeyLookUp,
    KeyStore,
    DeclarationStore,
    Accounts,
    Claims,
    OrderedRecords,
    OpenRecords,
    BegunRecords,
    RecordLeases,
    RecordPages,
    Latencies {}

/** What the store needs beside its engine. */
interface StoreOptions extends Omit<RecordStoreOptions, 'owner'> {
  /** Names for keys, postings and owners. */
  readonly nextId: NextId;
}

/**
 * The statements, written once for every engine: as units that are whole or not at all, and as reads that no unit has to
 * wait for. A read sees every unit that was committed before it began, and can end after a later one. Every store is an
 * owner of its own: it keeps its open records under an id that no other store has, and whose lease has to be kept.
 */
export function createStore(engine: Engine, options: StoreOptions): Store {
  const { nextId, now, ...others } = options;
  const owner = { id: nextId() };
  return {
    ...createKeyStore(engine, nextId, now),
    ...createDeclarationStore(engine, nextId, now),
    ...createAccounts(engine, nextId, now),
    ...createRecordStore(engine, { now, owner, ...others }),
    ...createRecordPages(engine),
    ...createLatencies(engine),
    ...createClaims(engine, owner),
    ...createLeases(engine, owner, nextId),
  };
}
