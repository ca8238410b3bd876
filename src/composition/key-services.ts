import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { keepDeclarations } from '../background/keep-declarations.ts';
import type { Declarations } from '../background/keep-declarations.ts';
import type { DeclaredKey } from '../domain/declared-key.ts';
import type { Clock } from '../domain/ports/clock.ts';
import { declareKeys } from '../operations/declare-keys.ts';
import { createKeyManagement } from '../operations/manage-keys.ts';
import type { KeyManagement } from '../operations/manage-keys.ts';
import { hashKey } from '../shared/hash-key.ts';
import type { Log } from '../telemetry/logger.ts';
import type { StorageServices } from './storage-services.ts';

/** What operators do with issued keys. */
export function composeKeyManagement({ store, keyDirectory }: StorageServices, clock: Clock): KeyManagement {
  const forgetKeys = (): void => keyDirectory.forgetAll();
  return createKeyManagement({ clock, randomBytes, hash: hashKey, forgetKeys, store });
}

/** Keeps the keys that the config in force declares. A config that declares the same keys as the one before is ignored. */
export function keepDeclaredKeys(
  { store, keyDirectory, recovered }: StorageServices,
  clock: Clock,
  { fault, notice }: Pick<Log, 'fault' | 'notice'>,
): Declarations {
  const ports = { store, hash: hashKey, now: () => clock.now() };
  const declarations = keepDeclarations({
    clock,
    directory: keyDirectory,
    store: (keys) => declareKeys(keys, ports),
    ready: recovered,
    onFault: fault,
    notice,
  });
  let before: readonly DeclaredKey[] | null = null;
  return {
    ...declarations,
    declare(keys) {
      if (isDeepStrictEqual(keys, before)) return;
      before = keys;
      declarations.declare(keys);
    },
  };
}
