import { hashKey } from './digest.ts';

/** The prefix of a key that is given by its hash. */
export const hashPrefix = 'sha256:';

/** The hashes of no text and of a line feed, which a shell makes of a variable that is not set. */
const hashesOfNothing = new Set(['', '\n'].map(hashKey));

/** What a text in place of a hash is told. */
export const expectedHash = `expected ${hashPrefix} and 64 hexadecimal digits`;

/** Why a text is no `sha256:` with the hash of a key behind it, in words that don't quote it; `null` if it is one. */
export function findProblemOfHash(text: string): string | null {
  const [, hash] = /^sha256:([0-9a-f]{64})$/.exec(text.toLowerCase()) ?? [];
  if (hash === undefined) return expectedHash;
  return hashesOfNothing.has(hash) ? 'the hash of an empty text: was a variable not set?' : null;
}
