import type { PresentedRecord } from '../../../../http/present/record.ts';
import { AdminError, adminPath, callAdmin, inPath } from '../../../api/admin-api.ts';
import type { Asked } from '../../../api/use-loaded.ts';
import { useLoaded } from '../../../api/use-loaded.ts';
import type { ManagedKey } from '../use-key-names.ts';

/** What is known of a request. */
interface KnownRequest {
  /** `null` before it has one, and for a request that never had one or has it no more. */
  readonly record: PresentedRecord | null;
  /** Whether a request without a record is in progress. */
  readonly isRunning: boolean;
  /** Why there is no record. */
  readonly reason: string | null;
  /** Its key as it is today; `null` if it can't be read. */
  readonly key: ManagedKey | null;
}

/** Reads a request: its record and its key, or whether it is in progress. */
export function useRequest(id: string): Asked<KnownRequest> {
  return useLoaded(id, async (signal) => {
    try {
      const path = adminPath(`records/${inPath(id)}`);
      const record = await callAdmin<PresentedRecord>(path, { signal });
      const key = await readKey(record.key_id, signal);
      return { record, isRunning: false, reason: null, key };
    } catch (error) {
      if (!(error instanceof AdminError) || error.status !== 404) throw error;
      const isRunning = await isInProgress(id, signal);
      return { record: null, isRunning, reason: error.message, key: null };
    }
  });
}

async function readKey(id: string, signal: AbortSignal): Promise<ManagedKey | null> {
  try {
    return await callAdmin<ManagedKey>(adminPath(`keys/${inPath(id)}`), { signal });
  } catch (error) {
    if (error instanceof AdminError && error.status === 404) return null;
    throw error;
  }
}

async function isInProgress(id: string, signal: AbortSignal): Promise<boolean> {
  const { data } = await callAdmin<{ readonly data: readonly { readonly request_id: string }[] }>(
    adminPath('in-flight'),
    { signal },
  );
  return data.some(({ request_id: other }) => other === id);
}
