import { createHash } from 'node:crypto';

/** Longest name that can be read in an id, in bytes. */
const longestName = 10;

/**
 * The id of a request that arrived at a time, in milliseconds since 1970, made of a name that stands for it in a test. Ids with
 * short names of one length are in the order of these.
 */
export function requestIdFor(name: string, createdAtMs = 1): string {
  const bytes = Buffer.from(name);
  const tail =
    bytes.length <= longestName
      ? Buffer.concat([bytes], longestName)
      : createHash('sha256').update(bytes).digest();
  return `req_${createdAtMs.toString(16).padStart(12, '0')}${tail.toString('hex', 0, longestName)}`;
}

/** The short name in an id of `requestIdFor`. */
export function requestName(id: string): string {
  return Buffer.from(id.slice(-2 * longestName), 'hex')
    .toString()
    .replaceAll('\0', '');
}
