import { readFileSync } from 'node:fs';
import type { ConnectionLimits } from '../domain/edge.ts';
import type { Config } from './schema/schema.ts';

/** The assumed limit of open files and sockets on systems that do not report one: the usual default. */
const usualDescriptors = 1_024;

/** How many file descriptors the process itself needs: for its database, log, threads and DNS look-ups. */
const ownDescriptors = 64;

/** How many connections the admin listener accepts at most: from probes, scrapers and operators. */
const maxAdminConnections = 64;

/** The bounds of the public listener's default: fewer are useless, and more would use more memory than expected. */
const leastConnections = 8;
const mostConnections = 10_000;

/** The bounds of the default for anonymous connections per address, which is half of all connections. */
const leastAnonymousPerAddress = 16;
const mostAnonymousPerAddress = 1_024;

/**
 * The limits of both listeners. The default counts two descriptors for each public connection, one of them for a socket
 * to an upstream, and reserves those of the process and the admin listener: clients can't use up all descriptors. Of
 * several `processes` on one port, to which connections go in turn, each has its part of a limit that is set, rounded
 * down, so that together they keep it, but at least one; its descriptors are its own.
 */
export function connectionLimits(
  {
    maxConnections,
    maxAnonymousPerAddress,
    socket,
  }: Pick<Config['server'], 'maxConnections' | 'maxAnonymousPerAddress' | 'socket'>,
  descriptors: number,
  processes = 1,
): { readonly public: ConnectionLimits; readonly admin: ConnectionLimits } {
  const admin = Math.min(maxAdminConnections, Math.max(leastConnections, Math.floor(descriptors / 16)));
  const affordable = Math.floor((descriptors - ownDescriptors - admin) / 2);
  const part = (limit: number | undefined) => limit && Math.max(1, Math.floor(limit / processes));
  const open = part(maxConnections) ?? Math.min(mostConnections, Math.max(leastConnections, affordable));
  const perAddress =
    part(maxAnonymousPerAddress) ??
    Math.min(mostAnonymousPerAddress, Math.max(leastAnonymousPerAddress, Math.ceil(open / 2)));
  return {
    // What connects to a unix socket is a proxy for many clients, and has no address.
    public: { maxConnections: open, maxAnonymousPerAddress: socket === undefined ? perAddress : open },
    admin: { maxConnections: admin, maxAnonymousPerAddress: admin },
  };
}

/** How many descriptors this process may have open, as Linux reports it; the usual default on other systems. */
export function readDescriptorLimit(): number {
  try {
    const [, soft] =
      /^Max open files +(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return soft === 'unlimited' ? Infinity : Number(soft ?? usualDescriptors);
  } catch {
    return usualDescriptors;
  }
}
