import { randomBytes } from 'node:crypto';
import { keepDeclarations } from '../background/keep-declarations.ts';
import type { Declarations } from '../background/keep-declarations.ts';
import { reportDeclarations } from '../background/report-declarations.ts';
import type { Clock } from '../domain/ports/clock.ts';
import { declareKeys } from '../operations/declare-keys.ts';
import { hasActiveKey } from '../operations/has-active-key.ts';
import { createKeyManagement } from '../operations/manage-keys.ts';
import type { KeyManagement } from '../operations/manage-keys.ts';
import { hashKey } from '../shared/hash-key.ts';
import type { Log } from '../telemetry/log/logger.ts';
import type { StorageServices } from './storage/storage-services.ts';

/** What operators do with issued keys. */
export function composeKeyManagement({ store, keyDirectory }: StorageServices, clock: Clock): KeyManagement {
  const forgetKeys = (): void => keyDirectory.forgetAll();
  return createKeyManagement({ clock, randomBytes, hash: hashKey, forgetKeys, store });
}

/** Keeps the keys that the config in force declares. */
export function keepDeclaredKeys(
  { store, keyDirectory, recovered }: StorageServices,
  clock: Clock,
  log: Pick<Log, 'fault' | 'notice' | 'info'>,
): Declarations {
  const ports = { store, randomBytes, hash: hashKey, now: () => clock.now() };
  const anyActive = (): Promise<boolean> => hasActiveKey(store, clock.now());
  return keepDeclarations({
    clock,
    directory: keyDirectory,
    store: (keys) => declareKeys(keys, ports),
    ready: recovered,
    onFault: log.fault,
    onChange: (report) => void reportDeclarations(report, anyActive, log),
  });
}
