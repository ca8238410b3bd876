import type { ManagedKey, PresentedGroup } from '../../../http/present/managed-key.ts';

/** A key as the admin API shows it. */
export type Key = ManagedKey;

/** A group of the config, with what its keys share. */
export type Group = PresentedGroup;

/** A budget in its current period. */
export type Budget = NonNullable<Key['budget']>;

/** A page of a list; `next` is the cursor of the next one. */
export interface Page<Entry> {
  readonly data: readonly Entry[];
  readonly next: string | null;
}

/** A secret that was just made, which the gateway never shows again. */
export interface Issued {
  readonly keyId: string;
  readonly keyName: string;
  readonly secret: string;
}
