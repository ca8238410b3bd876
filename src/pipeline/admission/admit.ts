import type { ApiKey } from '../../domain/keys/api-key.ts';
import { findGroup } from '../../domain/limits/groups.ts';
import { limitRefusal } from '../../domain/limits/limits.ts';
import type { Limits } from '../../domain/limits/limits.ts';
import { decideTokens, hasTokenLimit, tokenRefusal } from '../../domain/limits/token-limits.ts';
import type { TokenState } from '../../domain/limits/token-limits.ts';
import { refuseIfAway } from '../../domain/storage-refusal.ts';
import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { override } from '../../shared/override.ts';
import type { Exchange } from '../exchange.ts';
import { draining } from '../in-flight.ts';
import type { Ports } from '../ports.ts';
import { prepare } from '../prepare.ts';
import type { Admission, Admitted, Identified, Limited } from '../stages.ts';
import { authenticateAt } from './authenticate.ts';
import { changeGroupSlot, takeSlots } from './take-slots.ts';

/**
 * Takes one of the key's slots and counts a start, or returns the limit that was reached. A wrong tag takes neither, nor
 * does a key that has used its tokens, nor one of a group that is full. After a wait for a slot the conditions are checked
 * again: draining may have begun, and the key may have been revoked or changed. The limits that the client is told are those
 * at the end of the wait, by which it was decided; a tag that was allowed at its beginning stays.
 */
export async function admit(
  { key }: Identified,
  exchange: Exchange,
  ports: Ports,
): Promise<Admitted | Limited | Refusal> {
  const { client } = exchange;
  const { clock, inFlight } = ports;
  if (!inFlight.accepting) return draining();
  const group = findGroup(key, ports.groups());
  if (isRefusal(group)) return group;
  const tag = readTag(client.tag, key);
  if (isRefusal(tag)) return tag;
  const asked = override(ports.defaultLimits, key.limits);
  const tokens = await readTokens(key.id, asked, ports);
  if (isRefusal(tokens)) return tokens;
  const prepared = await prepare(key, { tag, group, limits: asked }, exchange, ports);
  const opening = prepared?.opening ?? null;
  const askedMs = clock.monotonicMs();
  const wanted = { keyId: key.id, group, limits: asked, opening: opening?.record ?? null };
  const taken = await takeSlots(wanted, exchange, ports);
  if (isRefusal(taken)) return taken;
  const { decision, hasWaited } = taken;
  const { reservation } = decision;
  const begun = opening === null || reservation === undefined ? null : { opening, reservation };
  const admittedMs = clock.monotonicMs();
  const limiterMs = admittedMs - askedMs;
  const slotWaitMs = hasWaited ? limiterMs : 0;
  const admission: Admission = {
    limits: asked,
    decision,
    tokens,
    admittedMs,
    limiterMs,
    slotWaitMs,
    group,
    tag,
    work: hasWaited || prepared === null ? null : prepared.work,
    begun,
  };
  const stop = (refusal: Refusal, limits = asked): Limited => ({
    stage: 'limited',
    key,
    admission: { ...admission, limits },
    refusal,
  });
  const admitted: Admitted = { stage: 'admitted', key, admission };
  // Its record is open: from here on it is a request in progress, which ends with a settlement.
  if (begun !== null) return admitted;
  if (!inFlight.accepting) return stop(draining());
  // It has its slots, which are shown, and stay true if the look-up throws.
  if (hasWaited && decision.verdict === 'granted' && taken.groupRefusal === null) exchange.stage = admitted;
  const found = hasWaited ? await authenticateAt(client, ports.keys) : key;
  if (isRefusal(found)) return stop(limitRefusal(decision, asked) ?? taken.groupRefusal ?? found);
  const limits = hasWaited ? override(ports.defaultLimits, found.limits) : asked;
  const limited = limitRefusal(decision, limits) ?? taken.groupRefusal;
  if (limited !== null) return stop(limited, limits);
  if (!hasWaited) return admitted;
  const renewed = await renew(admission, found, limits, exchange, ports);
  return isRefusal(renewed) ? stop(renewed, limits) : { stage: 'admitted', key: found, admission: renewed };
}

/**
 * Admits a request once more that waited for a permit of an upstream: its key may have been revoked or changed meanwhile. What
 * it goes on with has the key as it is now, and a slot of the group in which that is now.
 */
export async function admitAgain<Waited extends Pick<Admitted, 'key' | 'admission'>>(
  waited: Waited,
  exchange: Exchange,
  ports: Ports,
): Promise<Waited | Refusal> {
  const key = await authenticateAt(exchange.client, ports.keys);
  if (isRefusal(key)) return key;
  const limits = override(ports.defaultLimits, key.limits);
  const admission = await renew(waited.admission, key, limits, exchange, ports);
  return isRefusal(admission) ? admission : { ...waited, key, admission };
}

/** After a wait: requests that ran meanwhile may have used up the tokens of the key, and it may be in another group. */
async function renew(
  admission: Admission,
  key: ApiKey,
  limits: Limits,
  exchange: Exchange,
  ports: Ports,
): Promise<Admission | Refusal> {
  const tokens = await readTokens(key.id, limits, ports);
  if (isRefusal(tokens)) return tokens;
  const group = findGroup(key, ports.groups());
  if (isRefusal(group)) return group;
  const full = await changeGroupSlot(group, limits.queueWaitMs, exchange, ports);
  return full ?? { ...admission, limits, tokens, group };
}

/** How a key stands to its limits of tokens, `null` without one; the refusal if it has reached one. */
async function readTokens(
  keyId: string,
  limits: Limits,
  { tokenUse }: Pick<Ports, 'tokenUse'>,
): Promise<TokenState | null | Refusal> {
  if (!hasTokenLimit(limits)) return null;
  try {
    const state = decideTokens(limits, await tokenUse.used(keyId));
    return tokenRefusal(state) ?? state;
  } catch (error) {
    return refuseIfAway(error);
  }
}

/** The header in which a client gives its request a tag. It is never forwarded. */
export const tagHeader = 'x-textgate-tag';

/**
 * The tag of a request, by which its usage is summed up: one of its key's list, `null` without one, or a refusal. The list
 * is closed, so that no text of a client gets into the log, and each key has few sums. No message quotes what was sent.
 */
function readTag(sent: string | undefined, { tags }: Pick<ApiKey, 'tags'>): string | null | Refusal {
  if (sent === undefined) return null;
  if (tags.includes(sent)) return sent;
  const param = tagHeader;
  if (tags.length === 0)
    return refuse(
      'tag_not_allowed',
      `This key has no tags. Leave out the header '${tagHeader}', or ask the operator to give the key a list of tags (tags).`,
      { param },
    );
  return refuse(
    'tag_not_allowed',
    `The header '${tagHeader}' names no tag of this key. It may be one of: ${tags.join(', ')}. The operator can add others to the key's list (tags).`,
    { param },
  );
}
