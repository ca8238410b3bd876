import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { isPlainObject, parseJson } from '../shared/parse-json.ts';
import { readChatRequest } from '../protocol/chat/read-request.ts';
import type { Compatibility } from '../protocol/contract/compatibility.ts';
import { isTooDeep, maxJsonDepth } from '../protocol/json-depth.ts';
import { readResponsesRequest } from '../protocol/responses/read-request.ts';
import type { Protocol, TextRequest } from '../protocol/text.ts';
import type { Exchange } from './exchange.ts';
import type { Ports } from './ports.ts';
import type { Admitted, Asked } from './stages.ts';

type RequestReader = (
  body: Readonly<Record<string, unknown>>,
  compatibility: Compatibility,
) => TextRequest | Refusal;

const readers: Readonly<Record<Protocol, RequestReader>> = {
  chat: readChatRequest,
  responses: readResponsesRequest,
};

/** Fails on bytes that are not UTF-8: replacing them would change the client's text. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Reads and checks the body, and returns the neutral request or the refusal for its first fault. */
export async function normalize(
  protocol: Protocol,
  { key, admission }: Admitted,
  { client }: Exchange,
  { defaultCompatibility }: Ports,
): Promise<Asked | Refusal> {
  const bytes = await client.readBody();
  if (isRefusal(bytes)) return bytes;
  const body = parseBody(bytes);
  if (isRefusal(body)) return body;
  const request = readers[protocol](body, { ...defaultCompatibility, ...key.compatibility });
  return isRefusal(request) ? request : { stage: 'asked', key, admission, request };
}

function parseBody(bytes: Uint8Array): Readonly<Record<string, unknown>> | Refusal {
  if (isTooDeep(bytes))
    return refuse('invalid_json', `The request body is nested deeper than ${maxJsonDepth} levels.`);
  const text = decode(bytes);
  const body = text === null ? undefined : parseJson(text);
  if (body === undefined)
    return refuse(
      'invalid_json',
      'The request body could not be parsed as JSON in UTF-8. Check how your HTTP library encodes it.',
    );
  if (isPlainObject(body)) return body;
  return refuse('invalid_type', 'The request body must be a JSON object with a model and its text.');
}

/** `null` for bytes that are not UTF-8. */
function decode(bytes: Uint8Array): string | null {
  try {
    return utf8.decode(bytes);
  } catch {
    return null;
  }
}
