import type { ClientConnection } from '../../src/pipeline/client-connection.ts';

/** What all clients have in common that send a request straight into the pipeline. */
export function clientFacts(
  id: string,
  secret: string,
  body: object,
): Omit<ClientConnection, 'onGone' | 'answer' | 'open' | 'send' | 'end' | 'tearDown'> {
  return {
    id,
    head: { method: 'POST', route: '/', trace: {} },
    triedKeyId: null,
    authorization: `Bearer ${secret}`,
    otherKeyHeader: null,
    address: '127.0.0.1',
    loggedAddress: null,
    tag: undefined,
    claim: undefined,
    headFault: null,
    retryCount: undefined,
    lastEventId: undefined,
    maxCost: undefined,
    recognize: () => {},
    arrivedBytes: 1,
    readBody: async () => Buffer.from(JSON.stringify(body)),
    onHalfClosed: () => {},
  };
}
