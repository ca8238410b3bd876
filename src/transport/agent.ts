import { lookup } from 'node:dns';
import { Agent } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import type { ConnectionOptions } from './connections.ts';
import { refusingLookup } from './refusing-lookup.ts';

/**
 * Node's own connections to an upstream, for what is passed on verbatim: under the same rules as every model call. None
 * is kept, because one that the other side closes just then could not be told from an upstream that is down, and a body
 * that was passed on can't be sent again.
 */
export function createAgent(
  { protocol }: URL,
  { allowLinkLocal }: Pick<ConnectionOptions, 'allowLinkLocal'>,
): Agent {
  const options = { keepAlive: false, ...(allowLinkLocal ? {} : { lookup: refusingLookup(lookup) }) };
  return protocol === 'https:' ? new TlsAgent(options) : new Agent(options);
}
