import { lookup } from 'node:dns';
import { Agent } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import type { ConnectionOptions } from './connections.ts';
import { refusingLookup } from './refusing-lookup.ts';

/**
 * Connections to an upstream for the passthrough, through Node's own client and under the same address rules as model
 * calls. None is kept alive: one that the upstream closes at the moment of reuse looks like an upstream that is down, and
 * a streamed request body can't be sent again.
 */
export function createAgent(
  { protocol }: URL,
  { allowLinkLocal }: Pick<ConnectionOptions, 'allowLinkLocal'>,
): Agent {
  const options = { keepAlive: false, ...(allowLinkLocal ? {} : { lookup: refusingLookup(lookup) }) };
  return protocol === 'https:' ? new TlsAgent(options) : new Agent(options);
}
