import { readFileSync } from 'node:fs';
import type { ConnectionLimits } from '../domain/connection-limits.ts';
import type { Config } from './schema.ts';

/** How many files and sockets a process may have open where the system does not say: the usual limit. */
const usualDescriptors = 1_024;

/** How many of them the process itself needs: its database, log, threads and look-ups of names. */
const ownDescriptors = 64;

/** How many connections the admin listener takes at the most: probes, scrapers, and an operator. */
const maxAdminConnections = 64;

/** The bounds of a default for the public listener: fewer would serve nobody, more would want memory that is not asked for. */
const leastConnections = 8;
const mostConnections = 10_000;

/** The bounds of the default for connections without a known key from one address, half of all otherwise. */
const leastAnonymousPerAddress = 16;
const mostAnonymousPerAddress = 1_024;

/**
 * The limits of both listeners. By default a public connection may have a socket to an upstream beside it, and what the
 * process and the admin listener need is kept free, so that the public can't use up all descriptors.
 */
export function connectionLimits(
  { maxConnections, maxAnonymousPerAddress }: Config['server'],
  descriptors: number,
): { readonly public: ConnectionLimits; readonly admin: ConnectionLimits } {
  const admin = Math.min(maxAdminConnections, Math.max(leastConnections, Math.floor(descriptors / 16)));
  const affordable = Math.floor((descriptors - ownDescriptors - admin) / 2);
  const open = maxConnections ?? Math.min(mostConnections, Math.max(leastConnections, affordable));
  const perAddress =
    maxAnonymousPerAddress ??
    Math.min(mostAnonymousPerAddress, Math.max(leastAnonymousPerAddress, Math.ceil(open / 2)));
  return {
    public: { maxConnections: open, maxAnonymousPerAddress: perAddress },
    admin: { maxConnections: admin, maxAnonymousPerAddress: admin },
  };
}

/** The descriptors that this process may have open, as Linux tells it; the usual limit elsewhere. */
export function readDescriptorLimit(): number {
  try {
    const [, soft] =
      /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === 'unlimited' ? Infinity : Number(soft ?? usualDescriptors);
  } catch {
    return usualDescriptors;
  }
}
