import type { IncomingMessage } from 'node:http';
import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { connectionOf } from '../connections/connection.ts';

/**
 * Refuses duplicates of headers of which Node keeps the first value or joins all: a proxy could read another one, and
 * which of two credentials counts must not depend on the parser.
 */
export function findDuplicateHeader({ rawHeaders, socket }: IncomingMessage): Refusal | null {
  // Our own listeners have checked the whole head.
  if (connectionOf(socket) !== undefined) return null;
  let [authorizations, contentTypes, idempotencyKeys] = [0, 0, 0];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (isNamed(name, 'authorization')) authorizations++;
    else if (isNamed(name, 'content-type')) contentTypes++;
    else if (isNamed(name, 'idempotency-key')) idempotencyKeys++;
  }
  return (
    refuseDuplicate('authorization', authorizations) ??
    refuseDuplicate('content-type', contentTypes) ??
    refuseDuplicate('idempotency-key', idempotencyKeys)
  );
}

/** Whether a header has a name in lower case; most names have another length. */
function isNamed(name: string, lowerCase: string): boolean {
  return name.length === lowerCase.length && name.toLowerCase() === lowerCase;
}

function refuseDuplicate(name: string, count: number): Refusal | null {
  if (count <= 1) return null;
  return refuse('duplicate_header', `The header '${name}' was sent ${count} times. Send it once.`);
}
