import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { readChatRequest } from '../protocol/chat/read-request.ts';
import { readResponsesRequest } from '../protocol/responses/read-request.ts';
import type { Protocol, TextRequest } from '../protocol/text.ts';
import type { Exchange } from './exchange.ts';

const readers: Readonly<Record<Protocol, (body: unknown) => TextRequest | Refusal>> = {
  chat: readChatRequest,
  responses: readResponsesRequest,
};

/** Strict, because a replaced byte would change the text that the client meant. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Reads the body into the neutral request. Everything that can be wrong with it is found here. */
export async function normalize(exchange: Exchange): Promise<TextRequest | Refusal> {
  const bytes = await exchange.client.readBody();
  if (isRefusal(bytes)) return bytes;
  const body = parseBody(bytes);
  if (isRefusal(body)) return body;
  const request = readers[exchange.protocol](body.value);
  if (isRefusal(request)) return request;
  exchange.notes.stream = request.stream;
  exchange.notes.stripped = request.stripped;
  return request;
}

function parseBody(bytes: Uint8Array): { readonly value: unknown } | Refusal {
  try {
    return { value: JSON.parse(utf8.decode(bytes)) };
  } catch {
    return refuse(
      'invalid_json',
      'The request body could not be parsed as JSON in UTF-8. Check how your HTTP library encodes it.',
    );
  }
}
