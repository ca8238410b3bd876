import type { Migration } from '../../migration.ts';
import { books } from './books.ts';
import { budgets } from './budgets.ts';
import { changes } from './changes.ts';
import { groups } from './groups.ts';
import { keyNetworks } from './key-networks.ts';
import { leases } from './leases.ts';
import { outbox } from './outbox.ts';
import { retention } from './retention.ts';
import { roomShares } from './room-shares.ts';
import { slots } from './slots.ts';
import { usage } from './usage.ts';
import { tokenUse } from './token-use.ts';
import { statements } from './statements.ts';
import { weights } from './weights.ts';
import { refusals } from './refusals.ts';
import { usageGroups } from './usage-groups.ts';

/** Every step, in order. */
export const migrations: readonly Migration[] = [
  books,
  leases,
  slots,
  changes,
  keyNetworks,
  retention,
  usage,
  tokenUse,
  statements,
  budgets,
  outbox,
  groups,
  roomShares,
  weights,
  refusals,
  usageGroups,
];
