import { isRefusal } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { refuseIfAway } from '../../domain/storage-refusal.ts';
import type { Exchange } from '../exchange.ts';
import { interruptedBy, refused } from '../results.ts';
import type { ExchangeResult } from '../results.ts';
import {
  processSilent,
  tooLongToJoin,
  tooManyJoins,
  tooManyLookUps,
  unknownResponse,
} from './claim-refusals.ts';
import type { AnswerSource } from './claimed-run.ts';
import { beginJoined } from './join-answer.ts';
import type { Joiner } from './join-answer.ts';
import type { FoundRun, PeerRefusal, RunEvents, WantedRequest } from './peers.ts';
import type { RunningClaims } from './running-claims.ts';

/** What a client wants of a run: as it was asked, or as a stream; `null` where it wants none of it. */
type WantedForm = (asked: AnswerSource) => AnswerSource | null;

/** As it was asked. */
export const asItIs: WantedForm = (asked) => asked;

/**
 * Sends a client the answer of the run of another request, which another process has, as `joinAnswer` does; resolves with how
 * its own request has ended, or with `none` where no other process has the run. `owner` is the id under which the one that has it
 * has its lease; `null` where that is not known.
 */
export async function joinElsewhere(
  wanted: WantedRequest,
  { owner, as }: { readonly owner: string | null; readonly as: WantedForm },
  joiner: Joiner,
  exchange: Exchange,
  claims: Pick<RunningClaims, 'peers' | 'ask'>,
): Promise<ExchangeResult | 'none'> {
  if (claims.peers === null) return 'none';
  const endAsk = claims.ask(wanted.keyId);
  if (endAsk === null) return refused(tooManyLookUps());
  const { signal } = exchange.interruption;
  const found = await claims.peers.join(wanted, owner, signal).catch(refuseIfAway).finally(endAsk);
  if (signal.aborted) return interruptedBy(signal, null);
  if (isRefusal(found)) return refused(found);
  if (found === 'none') return 'none';
  return typeof found === 'string' ? refused(refusals[found]()) : joinFound(found, as, joiner, exchange);
}

/** Sends a client the answer of a run that another process has begun to send. */
export async function joinFound(
  { first, events }: FoundRun,
  as: WantedForm,
  joiner: Joiner,
  exchange: Exchange,
): Promise<ExchangeResult> {
  try {
    const asked = as(first.asked);
    if (asked === null) return refused(unknownResponse());
    const refusal = beginJoined(asked, first.requestId, joiner, exchange);
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
    switch (event?.kind) {
      case 'text':
        if (!delivery.send(event.deltas)) await delivery.drained();
        break;
      case 'opened':
        delivery.open();
        break;
      case 'ended':
        await delivery.conclude(event.settled);
        return { kind: 'joined', isReplay };
      case 'joined':
      case 'refused':
      case undefined:
      default:
        // Also where it says what only a later version knows.
        return delivery.wasOpened ? lost : refused(processSilent());
    }
  }
}

const lost: ExchangeResult = { kind: 'interrupted', interruption: 'lost', usage: null };
