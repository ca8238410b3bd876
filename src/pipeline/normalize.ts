import { isRefusal } from '../shared/errors.ts';
import type { ApiKey } from '../domain/keys/api-key.ts';
import { override } from '../shared/override.ts';
import type { Refusal } from '../shared/errors.ts';
import { readChatRequest } from '../protocol/chat/read-request.ts';
import type { Compatibility } from '../protocol/contract/compatibility.ts';
import { parseBody } from '../protocol/parse-body.ts';
import { readResponsesRequest } from '../protocol/responses/read-request.ts';
import type { Protocol, TextRequest } from '../protocol/text.ts';
import { noteRequest } from './claims/claim-request.ts';
import type { Exchange } from './exchange.ts';
import type { Ports } from './ports.ts';

type RequestReader = (
  body: Readonly<Record<string, unknown>>,
  compatibility: Compatibility,
) => TextRequest | Refusal;

const readers: Readonly<Record<Protocol, RequestReader>> = {
  chat: readChatRequest,
  responses: readResponsesRequest,
};

/** Reads and checks the body, and returns the neutral request or the refusal for its first fault. */
export async function normalize(
  protocol: Protocol,
  key: ApiKey,
  exchange: Exchange,
  { defaultCompatibility }: Pick<Ports, 'defaultCompatibility'>,
): Promise<TextRequest | Refusal> {
  const bytes = exchange.body ?? (await exchange.client.readBody());
  if (isRefusal(bytes)) return bytes;
  noteRequest(exchange, bytes);
  const body = parseBody(bytes);
  if (isRefusal(body)) return body;
  return readers[protocol](body, override(defaultCompatibility, key.compatibility));
}
