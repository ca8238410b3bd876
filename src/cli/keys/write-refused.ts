import type { ManagedKey } from '../../http/present/managed-key.ts';
import { count } from '../../shared/count.ts';

/** How many requests of a key were refused today, and by which limits; a server of an earlier version does not say. */
export function writeRefused(byLimit: Partial<ManagedKey>['refused_today']): string {
  if (byLimit === undefined) return '-';
  const limits = Object.entries(byLimit).toSorted(([, one], [, other]) => other - one);
  const sum = limits.reduce((total, [, requests]) => total + requests, 0);
  if (sum === 0) return 'none';
  return `${count(sum, 'request')}: ${limits.map(([limit, requests]) => `${requests} by ${limit}`).join(', ')}`;
}
