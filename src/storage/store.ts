import type { Accounts } from '../domain/ports/accounts.ts';
import type { DeclarationStore, KeyLookUp, KeyStore } from '../domain/ports/key-store.ts';
import type { RecordPages } from '../domain/ports/record-pages.ts';
import type { OpenRecords, RecordLeases, RecoverableRecords } from '../domain/ports/records.ts';
import type { Engine } from './engine.ts';
import { createAccounts, createDeclarationStore, createKeyStore } from './key-store.ts';
import { createRecordLeases, createRecordPages, createRecordStore } from './record-store.ts';
import type { RecordStoreOptions } from './record-store.ts';

/** Everything that the service stores. */
export interface Store
  extends
    KeyLookUp,
    KeyStore,
    DeclarationStore,
    Accounts,
    RecoverableRecords,
    OpenRecords,
    RecordLeases,
    RecordPages {}

/**
 * The statements, written once for every engine: as units that are whole or not at all, and as reads that no unit has to
 * wait for. A read sees every unit that was committed before it began, and can end after a later one. Every store is an
 * owner of its own: it keeps its open records under an id that no other store has.
 */
export function createStore(engine: Engine, options: Omit<RecordStoreOptions, 'owner'>): Store {
  const { nextId, now } = options;
  const owner = nextId();
  return {
    ...createKeyStore(engine, nextId, now),
    ...createDeclarationStore(engine, nextId, now),
    ...createAccounts(engine, nextId, now),
    ...createRecordStore(engine, { ...options, owner }),
    ...createRecordPages(engine),
    ...createRecordLeases(engine, owner),
  };
}
