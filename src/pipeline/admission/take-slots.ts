import type { Refusal } from '../../shared/errors.ts';
import { groupRefusal, limitsOfGroup } from '../../domain/limits/groups.ts';
import type { Group, GroupSlot } from '../../domain/limits/groups.ts';
import type { Limits } from '../../domain/limits/limits.ts';
import type { OpenedRecord } from '../../domain/money/consumption.ts';
import type { Acquired } from '../../domain/ports/limiter.ts';
import { refuseIfAway } from '../../domain/storage-refusal.ts';
import type { Exchange } from '../exchange.ts';
import type { Ports } from '../ports.ts';

/** Whose slots a request takes, and by which limits of its key. */
interface SlotsWanted {
  readonly keyId: string;
  readonly group: Group | null;
  readonly limits: Limits;
  /** The record that may be begun with the slot of the key; `null` where it is begun by itself. */
  readonly opening: OpenedRecord | null;
}

/** How a request asks for a slot of its group: under which name, and for how long it may wait. */
interface GroupAsk extends Pick<GroupSlot, 'name'> {
  readonly queueWaitMs: number;
  /** How long a request of the key may wait altogether, in milliseconds. */
  readonly keyWaitMs: number;
  readonly signal: AbortSignal;
}

/** What became of a request that asked for slots. */
export interface SlotsTaken {
  /** The decision on the slot of the key. */
  readonly decision: Acquired;
  /** The refusal of a request that got a slot of its key and none of its group. */
  readonly groupRefusal: Refusal | null;
  readonly hasWaited: boolean;
}

/**
 * Takes a slot of the group, if the group has a limit, and a slot of the key, which also counts a start:
 *
 * 1. Both without waiting, the one of the group first: a request that the group refuses must not count a start.
 * 2. If one of them is not free and the request may wait, it waits for the slot of its key first, and has none of the group
 *    meanwhile: other keys can use that. Then it waits for the slot of the group, and keeps the one of its key.
 *
 * If the key is known to have no slot, the first step is left out: a client that asks again and again would otherwise take
 * the group's slots from other keys, each time for a moment. Returns a refusal where there is no decision on the key. What
 * was taken is given back when the request is settled.
 */
export function takeSlots(
  wanted: SlotsWanted,
  exchange: Exchange,
  ports: Ports,
): Promise<SlotsTaken | Refusal> {
  // Its limiter has reported that the database is away.
  return take(wanted, exchange, ports).catch(refuseIfAway);
}

async function take(
  { keyId, group, limits, opening }: SlotsWanted,
  exchange: Exchange,
  ports: Ports,
): Promise<SlotsTaken | Refusal> {
  const { requestId, interruption } = exchange;
  const { clock, limiter, telemetry } = ports;
  const askedMs = clock.monotonicMs();
  const mayWait = limits.queueWaitMs > 0;
  const hasSlots = group !== null && group.concurrency !== null;
  const known = hasSlots ? limiter.knownRefusal(keyId, limits) : null;
  if (known !== null && !(known.verdict === 'concurrency' && mayWait))
    return { decision: known, groupRefusal: null, hasWaited: false };
  const keyWaitMs = limits.queueWaitMs;
  const atOnce = { name: `${requestId}:group`, queueWaitMs: 0, keyWaitMs, signal: interruption.signal };
  const full = known === null ? await takeOfGroup(group, atOnce, exchange, ports) : null;
  if (full !== null && !mayWait) return full;
  if (full === null && known === null) {
    const now = mayWait ? { ...limits, queueWaitMs: 0 } : limits;
    const decision = await limiter.acquire(keyId, requestId, now, interruption.signal, opening);
    if (decision.verdict !== 'concurrency' || !mayWait)
      return { decision, groupRefusal: null, hasWaited: false };
    await releaseGroupSlot(exchange, ports);
  }
  telemetry.waitBegan('slot');
  try {
    return await waitForSlots({ keyId, group, limits }, askedMs, exchange, ports);
  } finally {
    telemetry.waitEnded('slot', clock.monotonicMs() - askedMs);
  }
}

/** Waits for a slot of the key, and then, for what is left of the time since it asked, for one of the group. */
async function waitForSlots(
  { keyId, group, limits }: Omit<SlotsWanted, 'opening'>,
  askedMs: number,
  exchange: Exchange,
  ports: Ports,
): Promise<SlotsTaken> {
  const { requestId, interruption } = exchange;
  const { clock, inFlight, limiter } = ports;
  const { queueWaitMs: keyWaitMs } = limits;
  // The signal that also ends the wait of a drain is dear, and made for requests that wait alone.
  const signal = AbortSignal.any([interruption.signal, inFlight.draining]);
  const decision = await limiter.acquire(keyId, requestId, limits, signal);
  if (decision.verdict !== 'granted') return { decision, groupRefusal: null, hasWaited: true };
  const queueWaitMs = Math.max(0, keyWaitMs - (clock.monotonicMs() - askedMs));
  // Under another name: the slot that was given back above may be taken back by the database only later.
  const waiting = { name: `${requestId}:group:waited`, queueWaitMs, keyWaitMs, signal };
  const refusal = await takeOfGroup(group, waiting, exchange, ports);
  return { decision, groupRefusal: refusal, hasWaited: true };
}

/** Takes a slot of a group, if that has a limit; returns the refusal if there is none within a time. */
async function takeOfGroup(
  group: Group | null,
  { name, queueWaitMs, keyWaitMs, signal }: GroupAsk,
  exchange: Exchange,
  { limiter }: Ports,
): Promise<Refusal | null> {
  if (group === null || group.concurrency === null) return null;
  const limits = limitsOfGroup(group, queueWaitMs);
  const decision = await limiter.acquire(group.id, name, limits, signal);
  if (decision.verdict !== 'granted') return groupRefusal(group, decision, keyWaitMs);
  exchange.groupSlot = { groupId: group.id, name };
  return null;
}

/**
 * Has a request that waited hold a slot of the group in which its key is then, and of no other: the key may be in another
 * group by now, and the group may have got a limit. It does not wait again; returns the refusal if that group is full.
 */
export async function changeGroupSlot(
  group: Group | null,
  keyWaitMs: number,
  exchange: Exchange,
  ports: Ports,
): Promise<Refusal | null> {
  if (exchange.groupSlot !== null && exchange.groupSlot.groupId === group?.id) return null;
  await releaseGroupSlot(exchange, ports);
  const { requestId, interruption } = exchange;
  const moved = {
    name: `${requestId}:group:moved`,
    queueWaitMs: 0,
    keyWaitMs,
    signal: interruption.signal,
  };
  return takeOfGroup(group, moved, exchange, ports).catch(refuseIfAway);
}

/** Gives the slot of the group back, if the request has one. */
export async function releaseGroupSlot(
  exchange: Exchange,
  { limiter }: Pick<Ports, 'limiter'>,
): Promise<void> {
  const { groupSlot } = exchange;
  if (groupSlot === null) return;
  exchange.groupSlot = null;
  await limiter.release(groupSlot.groupId, groupSlot.name);
}

/**
 * Gives all slots of a request back, once: resolves when that is done. A failure of the limiter must not cut off an answer that
 * is complete and paid for.
 */
export function freeSlots(exchange: Exchange, ports: Pick<Ports, 'limiter' | 'telemetry'>): Promise<void> {
  return (exchange.freeing ??= release(exchange, ports));
}

async function release(exchange: Exchange, ports: Pick<Ports, 'limiter' | 'telemetry'>): Promise<void> {
  const { stage, requestId } = exchange;
  if (stage.stage === 'arrived') return;
  const report = (error: unknown): void => ports.telemetry.fault('slot not released', error);
  await ports.limiter.release(stage.key.id, requestId).catch(report);
  // Also where the slot of the key could not be released: the other keys of the group need this one.
  if (exchange.groupSlot !== null) await releaseGroupSlot(exchange, ports).catch(report);
}
