import type { Refusal } from '../../shared/errors.ts';
import type { Exchange } from '../exchange.ts';
import { interruptedBy, refused } from '../results.ts';
import type { ExchangeResult } from '../results.ts';
import { processSilent, tooLongToJoin, tooManyJoins } from './claim-refusals.ts';
import type { AnswerSource } from './claimed-run.ts';
import { beginJoined } from './join-answer.ts';
import type { Joiner } from './join-answer.ts';
import type { PeerRefusal, Peers, RunEvents, WantedRun } from './peers.ts';

/** What a client of this process wants of a run of another one. */
export interface JoinElsewhere extends WantedRun {
  /** The id under which the process that has it has its lease; `null` where it is not known. */
  readonly owner: string | null;
  /** What of the run its client wants: as it was asked, or as a stream; `null` where it wants none of it. */
  readonly as: (asked: AnswerSource) => AnswerSource | null;
}

/**
 * Sends a client the answer of a run of another process, as `joinAnswer` does; resolves with how its own request has ended, or
 * with `none` where no other process has the run.
 */
export async function joinElsewhere(
  peers: Peers,
  { owner, as, keyId, requestId }: JoinElsewhere,
  joiner: Joiner,
  exchange: Exchange,
): Promise<ExchangeResult | 'none'> {
  const { signal } = exchange.interruption;
  const found = await peers.join({ keyId, requestId }, owner, signal);
  if (signal.aborted) return interruptedBy(signal, null);
  if (found === 'none') return 'none';
  if (typeof found === 'string') return refused(refusals[found]());
  const { first, events } = found;
  try {
    if (first.kind !== 'joined') throw new Error(`the first event of a run is ${first.kind}`);
    const asked = as(first.asked);
    if (asked === null) return 'none';
    const refusal = beginJoined(asked, requestId, joiner, exchange);
    if (refusal !== null) return refused(refusal);
    return await passOn(events, first.isReplay, exchange);
  } finally {
    events.leave();
  }
}

/** Why a run of another process can't be joined. */
const refusals: Readonly<Record<Exclude<PeerRefusal, 'none'> | 'unreachable', () => Refusal>> = {
  crowded: tooManyJoins,
  too_long: tooLongToJoin,
  unreachable: processSilent,
};

/** Sends the events of a run as they come, at the pace of the client, which then slows the other process down. */
async function passOn(
  events: RunEvents,
  isReplay: boolean,
  { delivery, interruption: { signal } }: Exchange,
): Promise<ExchangeResult> {
  for (;;) {
    const event = await events.next();
    if (signal.aborted) return interruptedBy(signal, null);
    // The process that runs it is gone, or this one is cut off from it: what was sent is no answer, and it may be asked again.
    if (event === null || event.kind === 'refused')
      return delivery.wasOpened ? lost : refused(processSilent());
    if (event.kind === 'text' && !delivery.send(event.deltas)) await delivery.drained();
    if (event.kind === 'opened') delivery.open();
    if (event.kind !== 'ended') continue;
    await delivery.conclude(event.settled);
    return { kind: 'joined', isReplay };
  }
}

const lost: ExchangeResult = { kind: 'interrupted', interruption: 'lost', usage: null };
