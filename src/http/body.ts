import type { IncomingMessage } from 'node:http';
import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';

/** A request that a body parser of the surrounding app may have read before us. */
type MaybeParsed = IncomingMessage & { readonly body?: unknown };

/** Reads a JSON body of at most `maxBytes`, as bytes: what they mean is for the pipeline to say. */
export async function readJsonBody(
  request: IncomingMessage,
  maxBytes: number,
): Promise<Uint8Array | Refusal> {
  const fault = contentFault(request) ?? lengthFault(request, maxBytes);
  if (fault !== null) return fault;
  const parsed = (request as MaybeParsed).body;
  if (request.readableEnded && parsed !== undefined) return bytesOf(parsed);
  return readAll(request, maxBytes);
}

/** Whether the body is larger than anybody will read, so that the connection can't be used again. */
export function isOversized(request: IncomingMessage, maxBytes: number): boolean {
  return Number(request.headers['content-length'] ?? 0) > maxBytes;
}

function contentFault({ headers }: IncomingMessage): Refusal | null {
  const type = (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (!/^application\/([\w.-]+\+)?json$/.test(type))
    return refuse(
      'unsupported_content_type',
      `Unsupported content type${type === '' ? '' : ` '${type.slice(0, 64)}'`}: send the header 'Content-Type: application/json'.`,
    );
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding.toLowerCase() === 'identity') return null;
  return refuse('unsupported_content_type', 'Compressed request bodies are not accepted: send plain JSON.');
}

function lengthFault(request: IncomingMessage, maxBytes: number): Refusal | null {
  return isOversized(request, maxBytes) ? tooLarge(maxBytes) : null;
}

function tooLarge(maxBytes: number): Refusal {
  return refuse(
    'request_too_large',
    `The request body is larger than ${maxBytes} bytes. Shorten the history.`,
  );
}

function bytesOf(parsed: unknown): Uint8Array {
  if (parsed instanceof Uint8Array) return parsed;
  return Buffer.from(typeof parsed === 'string' ? parsed : JSON.stringify(parsed));
}

function readAll(request: IncomingMessage, maxBytes: number): Promise<Uint8Array | Refusal> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= maxBytes) return chunks.push(chunk);
      chunks.length = 0;
      request.pause();
      resolve(tooLarge(maxBytes));
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('close', () => resolve(refuse('request_timeout', 'The request body did not arrive whole.')));
    request.on('error', () => {});
  });
}
