import { Agent } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import type { Socket } from 'node:net';
import { createConnector } from './connector.ts';
import type { ConnectionOptions } from './connector.ts';
import { targetOf } from './socket-target.ts';

/** Opens a connection to an upstream, through its proxy if it has one. */
type OpenSocket = (callback: (error: Error | null, socket: Socket | null) => void) => void;

/**
 * Connections to an upstream for the passthrough, through Node's own client but opened like those of model calls. None is
 * kept alive: one that the upstream closes at the moment of reuse looks like an upstream that is down, and a streamed
 * request body can't be sent again. How they are opened may be replaced.
 */
export function createAgent(url: URL, options: ConnectionOptions): Agent & { open: OpenSocket } {
  const connector = createConnector(options);
  const target = targetOf(url, url.protocol);
  const open: OpenSocket = (callback) =>
    connector(target, (error, socket) => (error === null ? callback(null, socket) : callback(error, null)));
  const plain =
    url.protocol === 'https:' ? new TlsAgent({ keepAlive: false }) : new Agent({ keepAlive: false });
  const agent = Object.assign(plain, { open });
  agent.createConnection = (_options, callback) => {
    agent.open((error, socket) => callback?.(error, socket as Socket));
    return undefined;
  };
  return agent;
}
