import type { ApiKey } from '../domain/keys/api-key.ts';
import type { KeyStore } from '../domain/ports/key-store.ts';

/** How many keys are read at a time. */
const pageSize = 500;

/** Whether any stored key can be used at a time, in milliseconds since 1970. Rejects when the database can't be read. */
export async function hasActiveKey(store: Pick<KeyStore, 'listKeys'>, nowMs: number): Promise<boolean> {
  let before: string | null = null;
  do {
    const page = await store.listKeys({}, pageSize, before);
    if (page?.keys.some((key) => isActive(key, nowMs))) return true;
    before = page?.next ?? null;
  } while (before !== null);
  return false;
}

function isActive({ revokedAtMs, expiresAt }: ApiKey, nowMs: number): boolean {
  return revokedAtMs === null && (expiresAt === null || expiresAt > nowMs);
}
