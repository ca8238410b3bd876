import { randomBytes } from 'node:crypto';
import { keepDeclarations } from '../background/keep-declarations.ts';
import type { Declarations } from '../background/keep-declarations.ts';
import type { DeclarationChanges } from '../domain/keys/declared-key.ts';
import type { Clock } from '../domain/ports/clock.ts';
import { declareKeys } from '../operations/declare-keys.ts';
import { hasActiveKey } from '../operations/has-active-key.ts';
import { createKeyManagement } from '../operations/manage-keys.ts';
import type { KeyManagement } from '../operations/manage-keys.ts';
import type { LogFields } from '../domain/ports/telemetry.ts';
import { hashKey } from '../shared/hash-key.ts';
import type { Log } from '../telemetry/logger.ts';
import type { StorageServices } from './storage-services.ts';

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
  const anyActive = (): Promise<boolean> => hasActiveKey(store, clock.now());
  const ports = { store, hash: hashKey, now: () => clock.now() };
  return keepDeclarations({
    clock,
    directory: keyDirectory,
    store: (keys) => declareKeys(keys, ports),
    ready: recovered,
    onFault: log.fault,
    onChange: (changes) => void reportChanges(changes, anyActive, log),
  });
}

/** How many names of keys a line of the log has. */
const maxNames = 20;

/** Logs which keys a config has created, changed and revoked, and what to do if none is left. */
async function reportChanges(
  { changed, removed }: DeclarationChanges,
  anyActive: () => Promise<boolean>,
  { fault, info, notice }: Pick<Log, 'fault' | 'notice' | 'info'>,
): Promise<void> {
  const created = changed.map(({ declared }) => declared.name);
  if (created.length > 0) info('declared keys created or changed', namesOf(created));
  if (removed.length === 0) return;
  notice(
    'keys revoked, because neither the config nor TEXTGATE_KEY declares them any more',
    namesOf(removed),
  );
  try {
    if (!(await anyActive()))
      notice(
        'no active key is left, so all requests are refused: set TEXTGATE_KEY again, declare a key in the config, or run textgate keys create <name>',
      );
  } catch (error) {
    fault('the keys could not be read', error);
  }
}

function namesOf(names: readonly string[]): LogFields {
  const more = names.length - maxNames;
  return { names: [...names.slice(0, maxNames), ...(more > 0 ? [`${more} more`] : [])] };
}
