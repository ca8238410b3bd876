import { hashKey } from '../shared/digest.ts';
import type { Refusal } from '../shared/errors.ts';
import type { Actor } from '../domain/audit/audit-line.ts';
import { budgetOf } from '../domain/budgets/budget.ts';
import { idFrom } from '../domain/keys/api-key.ts';
import type { ApiKey } from '../domain/keys/api-key.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { KeyDirectory, NamedKey } from '../domain/ports/key-store.ts';
import { storageUnavailable } from '../domain/storage-refusal.ts';
import { describeNewKey } from './manage-keys.ts';
import type { KeyManagement } from './manage-keys.ts';

const name = 'playground';

/** What the playground's key may spend in a day, in nano-USD: enough to try models, and little enough for a mistake. */
const dailyNanos = 1_000_000_000;

/** The id of the key as which an operator tries models without naming one. It follows from the name: all nodes use one key. */
export const playgroundKeyId = idFrom(Buffer.from(hashKey(`key of the ${name}`), 'hex'));

/** The playground's key as it is when it is made. From then on it is a key as all others, which operators change. */
export function newPlaygroundKey(nowMs: number): ApiKey {
  return describeNewKey(
    name,
    { budget: budgetOf({ amount: dailyNanos, per: 'day' }) },
    playgroundKeyId,
    nowMs,
  );
}

/** A directory that makes the playground's key when it is named and not there yet: for the operator whose try-out names it. */
export function withPlaygroundKey(
  by: Actor,
  keys: KeyDirectory,
  { management, clock }: { readonly management: KeyManagement; readonly clock: Clock },
): KeyDirectory {
  const findById = async (id: string): Promise<NamedKey | null | Refusal> => {
    const found = await keys.findById(id);
    if (found !== null || id !== playgroundKeyId) return found;
    try {
      await management.storeOnce(by, newPlaygroundKey(clock.now()));
    } catch {
      return storageUnavailable();
    }
    return keys.findById(id);
  };
  return { ...keys, findById };
}
