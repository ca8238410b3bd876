import { parentPort } from 'node:worker_threads';
import { clearMergeCache, countTokens } from 'gpt-tokenizer/encoding/o200k_base';

/**
 * A thread that counts tokens: the tokenizer's tables take a quarter of a second to load, and a long text takes as long
 * to count, which would hold up every stream.
 */

/** To the thread: a piece of a text to count. The next one is sent when the reply has come. */
export interface CountRequest {
  readonly piece: string;
}

/** From the thread: the tokens of the piece, or why they could not be counted. */
export type CountReply =
  | { readonly kind: 'counted'; readonly tokens: number }
  | { readonly kind: 'failed'; readonly reason: string };

/**
 * How many pieces share the tokenizer's cache of split words, which is then cleared: a piece can fill 55 KB of it. Its own
 * bound is 100,000 words of any length, so that a few long texts would end the thread for want of memory.
 */
const piecesPerCache = 32;

let cachedPieces = 0;

const port = parentPort;
if (port === null) throw new Error('this file runs as a worker thread');
port.on('message', (request: CountRequest) => port.postMessage(answer(request)));

/** Counts with the tokenizer of OpenAI's newer models: a good estimate for text whose upstream reported no usage. */
function answer({ piece }: CountRequest): CountReply {
  try {
    return { kind: 'counted', tokens: countTokens(piece, { disallowedSpecial: new Set() }) };
  } catch (error) {
    return { kind: 'failed', reason: String(error) };
  } finally {
    if (++cachedPieces >= piecesPerCache) {
      clearMergeCache();
      cachedPieces = 0;
    }
  }
}
