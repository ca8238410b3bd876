import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { isInNetworks } from '../../shared/networks.ts';
import type { ApiKey } from '../../domain/keys/api-key.ts';
import type { KeyDirectory } from '../../domain/ports/key-store.ts';

const bearer = /^Bearer +(\S+)$/i;

/** What says whose key a request runs as: the headers in which a caller may have presented one, and its address. */
export interface Credentials {
  /**
   * The id of the key that an operator tries out, whose token or session was checked before; `null` for a client, which has
   * to present its key.
   */
  readonly triedKeyId: string | null;
  readonly authorization: string | undefined;
  /** The name of another header that some providers' clients use for keys, if there is one; it is not read. */
  readonly otherKeyHeader: string | null;
  /** In the form of `canonicalAddress`; empty if it is not known. Read for keys with a list of addresses alone. */
  readonly address: string;
}

/**
 * Finds the caller's key by its `Authorization` header, or refuses with the one 401 for every wrong key. In a try-out it is
 * the key that the operator names.
 */
export async function authenticate(
  { triedKeyId, authorization, otherKeyHeader }: Omit<Credentials, 'address'>,
  keys: KeyDirectory,
): Promise<ApiKey | Refusal> {
  if (triedKeyId !== null) return findTried(triedKeyId, keys);
  const presented = readBearer(authorization);
  if (presented === null) return otherKeyHeader === null ? unknownKey() : misplacedKey(otherKeyHeader);
  return (await keys.find(presented)) ?? unknownKey();
}

/** Finds the caller's key as `authenticate` does, or refuses it for the caller's address. */
export async function authenticateAt(
  credentials: Credentials,
  keys: KeyDirectory,
): Promise<ApiKey | Refusal> {
  const key = await authenticate(credentials, keys);
  return isRefusal(key) ? key : (refuseAddress(key, credentials) ?? key);
}

/** Why a key may not be used from its caller's address; `null` if it may. An operator's own address is not the key's. */
export function refuseAddress(
  { allowFrom }: Pick<ApiKey, 'allowFrom'>,
  caller: Pick<Credentials, 'address' | 'triedKeyId'>,
): Refusal | null {
  if (allowFrom === null || caller.triedKeyId !== null) return null;
  const { address } = caller;
  return isInNetworks(allowFrom, address) ? null : addressNotAllowed(address);
}

/** The credential of an `Authorization: Bearer` header; `null` when there is none. */
export function readBearer(authorization: string | undefined): string | null {
  return bearer.exec(authorization ?? '')?.[1] ?? null;
}

/**
 * The key with an id. One that can't be used is refused as a wrong value rather than by a 401, which would say that the
 * operator's own token or session is wrong.
 */
async function findTried(id: string, keys: KeyDirectory): Promise<ApiKey | Refusal> {
  const found = await keys.findById(id);
  if (found === null) return refuse('key_not_found', 'No key has this id.', { param: 'key' });
  if (isRefusal(found)) return found;
  const { key, fault } = found;
  if (fault === null) return key;
  const message = `The key ${key.id} is ${fault}: a client that presents it gets a 401. Choose another key.`;
  return refuse('invalid_value', message, { param: 'key' });
}

/** One answer for a missing, malformed, unknown or revoked key, so that guesses reveal nothing. */
function unknownKey(): Refusal {
  return refuse(
    'invalid_api_key',
    "No valid API key was given: it is missing, mistyped, expired or revoked. Send the header 'Authorization: Bearer <key>' with a key issued by this service, or ask its operator for a new one.",
  );
}

/** For clients of providers whose keys have a header of their own. */
function misplacedKey(header: string): Refusal {
  return refuse(
    'invalid_api_key',
    `The header '${header}' is not read by this service. Send the key as 'Authorization: Bearer <key>'.`,
  );
}

/** The holder of a leaked key learns no more than its own address, as it is seen here: which ones are allowed stays unsaid. */
function addressNotAllowed(address: string): Refusal {
  const from = address === '' ? 'an address that is not known here' : `the address ${address}`;
  return refuse(
    'address_not_allowed',
    `This key may not be used from ${from}. Ask the operator to add the address to the key's list (allowFrom), or, if it is a proxy's, to server.trustedProxies.`,
    { cause: `the key's allowFrom does not have ${address === '' ? 'an unknown address' : address}` },
  );
}
