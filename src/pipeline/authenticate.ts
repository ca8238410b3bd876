import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { ApiKey } from '../domain/api-key.ts';
import type { KeyDirectory } from '../domain/ports.ts';

const bearer = /^Bearer +(\S+)$/i;

/** Finds the caller's key by its `Authorization` header, or refuses with the one 401 for every wrong key. */
export async function authenticate(
  authorization: string | undefined,
  keys: KeyDirectory,
): Promise<ApiKey | Refusal> {
  const presented = bearer.exec(authorization ?? '')?.[1];
  if (presented === undefined) return unknownKey();
  return (await keys.find(presented)) ?? unknownKey();
}

/** One answer whether the key is missing, malformed, unknown or revoked, so that guessing teaches nothing. */
function unknownKey(): Refusal {
  return refuse(
    'invalid_api_key',
    "No valid API key was given. Send the header 'Authorization: Bearer <key>' with a key issued by this service.",
  );
}
