import { randomBytes } from 'node:crypto';
import { keepDeclarations } from '../background/keep-declarations.ts';
import { reportDeclarations } from '../background/report-declarations.ts';
import type { Clock } from '../domain/ports/clock.ts';
import { declareKeys } from '../operations/declare-keys.ts';
import { hasActiveKey } from '../operations/key-use.ts';
import { hashKey } from '../shared/digest.ts';
import type { ManagedKeyDirectory } from '../storage/keys/key-directory.ts';
import type { Log } from '../telemetry/log/logger.ts';
import type { StorageServices } from './storage/storage-services.ts';

/** Keeps the keys that the config in force declares. */
export function keepDeclaredKeys(
  { store, recovered }: Pick<StorageServices, 'store' | 'recovered'>,
  directory: ManagedKeyDirectory,
  clock: Clock,
  log: Log,
) {
  const now = (): number => clock.now();
  return keepDeclarations({
    clock,
    directory,
    store: (keys) => declareKeys(keys, { store, randomBytes, hash: hashKey, now }),
    ready: recovered,
    onFault: log.fault,
    onChange: (report) => void reportDeclarations(report, () => hasActiveKey(store, now()), log),
  });
}
