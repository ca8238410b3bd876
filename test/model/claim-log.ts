/** What is observed of a process. It `may lose its lease` once it can't have renewed it for about as long as that lasts. */
type ProcessChange =
  | 'starts'
  | 'is killed'
  | 'stands still'
  | 'goes on'
  | 'loses the database'
  | 'has the database'
  | 'may lose its lease';

/**
 * What is observed of one claim, from outside: of its clients, the upstream calls of its runs, and the processes. A client is one
 * request to one process. It may be read from the moment at which it asks, and its end may be seen from the moment at which it
 * leaves, both until it is gone.
 */
export type LogEvent =
  | { readonly what: 'asks'; readonly client: number; readonly process: number }
  | { readonly what: 'leaves' | 'is gone'; readonly client: number }
  | { readonly what: 'is served' | 'is told' | 'is refused'; readonly client: number }
  | { readonly what: 'is called'; readonly call: number; readonly process: number }
  | { readonly what: 'is answered' | 'is cut off'; readonly call: number }
  | { readonly what: ProcessChange; readonly process: number }
  | {
      readonly what:
        | 'nodes are apart'
        | 'nodes are together'
        | 'the database may crash'
        | 'the database is back';
    }
  | { readonly what: 'is charged'; readonly times: number };

/** An event in words. */
export function describeEvent(event: LogEvent): string {
  if ('client' in event)
    return `client ${event.client} ${event.what}${event.what === 'asks' ? ` process ${event.process}` : ''}`;
  if ('call' in event)
    return `call ${event.call} ${event.what === 'is called' ? `begins in process ${event.process}` : event.what}`;
  if ('process' in event) return `process ${event.process} ${event.what}`;
  return event.what === 'is charged' ? `the claim is charged ${event.times} times` : event.what;
}
