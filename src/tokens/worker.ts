import { parentPort } from 'node:worker_threads';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import type { CountReply, CountRequest } from './thread-messages.ts';

/**
 * A thread that counts tokens: the tokenizer's tables take a quarter of a second to load, and a long text takes as long
 * to count, which would hold up every stream.
 */

/** How many UTF-16 code units are counted at once: one word of any length takes the square of its length. */
const pieceChars = 2_048;

const port = parentPort;
if (port === null) throw new Error('this file runs as a worker thread');
port.on('message', (request: CountRequest) => port.postMessage(answer(request)));

function answer({ id, text }: CountRequest): CountReply {
  try {
    return { kind: 'counted', id, tokens: countInPieces(text) };
  } catch (error) {
    return { kind: 'failed', id, reason: String(error) };
  }
}

/** Counts with the tokenizer of OpenAI's newer models: a good estimate for text whose upstream reported no usage. */
function countInPieces(text: string): number {
  let tokens = 0;
  for (let start = 0; start < text.length; start += pieceChars)
    tokens += countTokens(text.slice(start, start + pieceChars), { disallowedSpecial: new Set() });
  return tokens;
}
