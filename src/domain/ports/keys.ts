import type { ApiKey } from '../api-key.ts';
import type { Refusal } from '../../shared/errors.ts';

/** Finds keys by the credential that a caller presents. */
export interface KeyDirectory {
  /** `null` for every kind of wrong key; a refusal when the store can't be read. */
  find(presented: string): Promise<ApiKey | null | Refusal>;
}
