import { readFastPath } from '../../src/config/environment.ts';
import { createChatStreamWriter } from '../../src/protocol/chat/write-answer.ts';
import { createResponsesStreamWriter } from '../../src/protocol/responses/write-answer.ts';
import type { Dialect } from '../../src/protocol/upstream/dialect.ts';
import { refusalOf } from '../../src/domain/upstreams/failure.ts';
import { createOrderLaw, eventsOf } from './order-law.ts';
import { streamReader } from './read-upstream.ts';
import { noExtras as extras } from './answers.ts';

const identity = { id: '0'.repeat(32), createdAtSeconds: 1_800_000_000, model: 'small' };

/** The bytes that a client gets for a stream that arrives in these pieces and is complete, without any socket. */
export function rewriteBytes(
  dialect: Dialect,
  clientProtocol: 'chat' | 'responses',
  pieces: readonly Uint8Array[],
  isFast = readFastPath(),
): string {
  const reader = streamReader(dialect, 'required', isFast);
  const law = createOrderLaw();
  const writer =
    clientProtocol === 'chat'
      ? createChatStreamWriter(identity, true)
      : createResponsesStreamWriter(identity, extras);
  let text = '';
  for (const read of [...pieces.map((piece) => () => reader.push(piece)), () => reader.end()]) {
    const part = read();
    for (const event of eventsOf(part)) law.check(event);
    for (const delta of part.deltas) text += writer.delta(delta);
    if (part.ending?.kind === 'finished') text += writer.finish(part.ending, identity.createdAtSeconds, null);
    if (part.ending?.kind === 'failed') text += writer.fail(refusalOf(part.ending.failure), null);
  }
  return text;
}
