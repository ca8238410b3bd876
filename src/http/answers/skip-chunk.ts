import type { Socket } from 'node:net';

/**
 * Makes Node's parser ignore the rest of a chunk. There is no public way to stop it in the middle, and to create
 * requests, responses and errors for two thousand heads costs more than to serve a few.
 */
export function skipRestOfChunk(socket: Socket): void {
  const { parser } = socket as { readonly parser?: { onIncoming: () => number } | null };
  if (parser) parser.onIncoming = () => 0;
}
