import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Socket } from 'node:net';
import { canonicalAddress, compileNetworks } from '../../shared/networks.ts';
import type { NetworkTest } from '../../shared/networks.ts';

/** How many entries of a list of forwarding proxies are read, from its end; the last one read counts then. */
const maxForwardingHops = 32;

/** The address of a client on a Unix socket, which is on this machine. */
const ownMachine = '127.0.0.1';

/** The address where none is known, as of a connection that was reset, or in a host with the Fetch API. */
const unknownAddress = '';

/** The other end of a connection. */
interface Peer {
  /** In the form of `canonicalAddress`; empty if it is not known. */
  readonly address: string;
  readonly isProxy: boolean;
}

/** How clients' addresses are found under one config. */
export type ClientAddresses = ReturnType<typeof readClientAddresses>;

/** Compiles the trusted proxies of a config: networks in the form of `canonicalNetwork`. */
export function readClientAddresses(trustedProxies: readonly string[], areLogged: boolean) {
  const isTrusted: NetworkTest = trustedProxies.length === 0 ? () => false : compileNetworks(trustedProxies);
  // A connection keeps its address when it is closed, but its socket does not.
  const peers = new WeakMap<Socket, Peer>();
  const peerOf = (socket: Socket): Peer => {
    const known = peers.get(socket);
    if (known !== undefined) return known;
    const address = addressOf(socket);
    const peer = { address, isProxy: isTrusted(address) };
    peers.set(socket, peer);
    return peer;
  };
  return {
    /**
     * The address of the client that sent a request, in the form of `canonicalAddress`: that of the connection, or the one
     * that trusted proxies report. Empty if it is not known.
     */
    of({ socket, headers }: IncomingMessage): string {
      const { address, isProxy } = peerOf(socket);
      const forwarded = isProxy ? headers['x-forwarded-for'] : undefined;
      return forwarded === undefined ? address : readForwarded(String(forwarded), address, isTrusted);
    },
    /** Whether the other end of a connection is a trusted proxy. */
    isProxy: (socket: Socket): boolean => trustedProxies.length > 0 && peerOf(socket).isProxy,
    /** Whether requests are logged and traced with the address. */
    areLogged,
  };
}

function addressOf({ remoteAddress, server }: Socket): string {
  if (remoteAddress !== undefined) return canonicalAddress(remoteAddress) ?? unknownAddress;
  // A Unix socket has no address, but neither has a connection that was reset, which must not pass for a local one.
  return typeof server?.address() === 'string' ? ownMachine : unknownAddress;
}

/**
 * Reads `X-Forwarded-For` from its end, where the nearest proxy wrote: the first address that is no trusted proxy's is
 * the client's, and what stands before it was written by the client itself. An entry that is no address ends the
 * reading: then the proxy that reported it counts.
 */
function readForwarded(list: string, peer: string, isTrusted: NetworkTest): string {
  let nearest = peer;
  for (const entry of list.split(',').slice(-maxForwardingHops).toReversed()) {
    const address = readHop(entry.trim());
    if (address === null) return nearest;
    nearest = address;
    if (!isTrusted(address)) return nearest;
  }
  return nearest;
}

/** The address of an entry; some proxies write a port behind it, and brackets around an IPv6 address. */
function readHop(entry: string): string | null {
  if (isIP(entry) !== 0) return canonicalAddress(entry);
  const [, ipv6, ipv4] = /^(?:\[([^\]]+)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/.exec(entry) ?? [];
  if (ipv6 !== undefined) return isIP(ipv6) === 6 ? canonicalAddress(ipv6) : null;
  return ipv4 === undefined ? null : canonicalAddress(ipv4);
}
