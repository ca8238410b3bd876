import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { ApiKey } from '../domain/keys/api-key.ts';
import type { KeyDirectory } from '../domain/ports/keys.ts';

const bearer = /^Bearer +(\S+)$/i;

/** The headers in which a caller may have presented a key. */
export interface Credentials {
  readonly authorization: string | undefined;
  /** The name of another header that some providers' clients use for keys, if there is one; it is not read. */
  readonly otherKeyHeader: string | null;
}

/** Finds the caller's key by its `Authorization` header, or refuses with the one 401 for every wrong key. */
export async function authenticate(
  { authorization, otherKeyHeader }: Credentials,
  keys: KeyDirectory,
): Promise<ApiKey | Refusal> {
  const presented = readBearer(authorization);
  if (presented === null) return otherKeyHeader === null ? unknownKey() : misplacedKey(otherKeyHeader);
  return (await keys.find(presented)) ?? unknownKey();
}

/** The credential of an `Authorization: Bearer` header; `null` when there is none. */
export function readBearer(authorization: string | undefined): string | null {
  return bearer.exec(authorization ?? '')?.[1] ?? null;
}

/** One answer for a missing, malformed, unknown or revoked key, so that guesses reveal nothing. */
function unknownKey(): Refusal {
  return refuse(
    'invalid_api_key',
    "No valid API key was given. Send the header 'Authorization: Bearer <key>' with a key issued by this service.",
  );
}

/** For clients of providers whose keys have a header of their own. */
function misplacedKey(header: string): Refusal {
  return refuse(
    'invalid_api_key',
    `The header '${header}' is not read by this service. Send the key as 'Authorization: Bearer <key>'.`,
  );
}
