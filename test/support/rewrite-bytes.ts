import { createChatStreamWriter } from '../../src/protocol/chat/write-stream.ts';
import { createOrderLaw } from '../../src/protocol/order-law.ts';
import { createResponsesStreamWriter } from '../../src/protocol/responses/write-stream.ts';
import type { Dialect } from '../../src/protocol/upstream/dialect.ts';
import { streamReader } from './read-upstream.ts';

const identity = { id: '0'.repeat(32), createdAtSeconds: 1_800_000_000, model: 'small' };
const extras = {
  instructions: null,
  maxOutputTokens: null,
  metadata: {},
  user: null,
  safetyIdentifier: null,
  promptCacheKey: null,
  endsWithDone: false,
};

/** The bytes that a client gets for a stream that arrives in these pieces and is complete, without any socket. */
export function rewriteBytes(
  dialect: Dialect,
  clientProtocol: 'chat' | 'responses',
  pieces: readonly Uint8Array[],
): string {
  const reader = streamReader(dialect);
  const law = createOrderLaw();
  const writer =
    clientProtocol === 'chat'
      ? createChatStreamWriter(identity, true)
      : createResponsesStreamWriter(identity, extras);
  let text = '';
  for (const events of [...pieces.map((piece) => () => reader.push(piece)), () => reader.end()]) {
    for (const event of events()) {
      law.check(event);
      if (event.type === 'delta') text += writer.delta(event.text);
      else if (event.type === 'finish') text += writer.finish(event, identity.createdAtSeconds);
      else text += writer.fail(event.refusal);
    }
  }
  return text;
}
