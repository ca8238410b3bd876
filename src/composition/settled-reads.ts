import { isDeepStrictEqual } from 'node:util';

/**
 * Reads of files that others replace: each returns what two reads in a row have found last, at first `first`. A file may be
 * half written at one read, and half of a key or of a chain of certificates can look like a whole one. The value stays the same
 * object while it is equal.
 */
export function settledReads<Value>(first: Value, read: () => Promise<Value>): () => Promise<Value> {
  let settled = first;
  let last = first;
  return async () => {
    const found = await read();
    if (isDeepStrictEqual(found, last) && !isDeepStrictEqual(found, settled)) settled = found;
    last = found;
    return settled;
  };
}
