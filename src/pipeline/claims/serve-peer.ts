import type { Ports } from '../ports.ts';
import { untilKnown } from './join-answer.ts';
import { cancelRun, findResponse, responseStateOf } from './response-state.ts';
import type { ClaimedRun } from './claimed-run.ts';
import type { PeerAnswer, PeerRefusal, ResponseAction, WantedRequest, WantedRun } from './peers.ts';
import type { Receiver } from './shared-answer.ts';

/** Sends a client of another process the answer of a run of this one; resolves when that is over. */
export async function serveJoin(
  wanted: WantedRun,
  peer: PeerAnswer,
  { claims }: Pick<Ports, 'claims'>,
): Promise<void> {
  const refuse = (reason: PeerRefusal): Promise<void> => {
    peer.send({ kind: 'refused', reason });
    return peer.end();
  };
  const found = await joinWanted(wanted, claims);
  if (typeof found === 'string') return refuse(found);
  const { run, leave } = found;
  try {
    const left = new Promise<void>((resolve) => peer.onLeft(resolve));
    await untilKnown(run, left);
    const { asked, phase, answer } = run;
    if (asked === null || phase === 'freed') return await refuse('none');
    if (!answer.isWhole) return await refuse('too_long');
    peer.send({ kind: 'joined', asked, requestId: run.requestId, isReplay: phase === 'ended' });
    await answer.listen(receiverOf(peer));
  } finally {
    leave();
  }
}

async function joinWanted(
  wanted: WantedRun,
  claims: Ports['claims'],
): Promise<{ readonly run: ClaimedRun; readonly leave: () => void } | PeerRefusal> {
  const { kind, keyId } = wanted;
  if (kind === 'retry') return (await claims.joinLeft(keyId, wanted.request)) ?? 'none';
  const run = claims.findRequest(keyId, wanted.requestId);
  if (run === undefined) return 'none';
  const leave = claims.join(run);
  return leave === null ? 'crowded' : { run, leave };
}

/** The other process, as an answer sees its clients. */
function receiverOf(peer: PeerAnswer): Receiver {
  return {
    // Whether the client has the end is known to the other process alone, which says so.
    hasLeft: true,
    onLeft: (callback) => peer.onLeft(callback),
    send: (deltas) => peer.send({ kind: 'text', deltas }),
    drained: () => peer.drained(),
    open: () => void peer.send({ kind: 'opened' }),
    conclude(settled) {
      peer.send({ kind: 'ended', settled });
      return peer.end();
    },
    tearDown: () => peer.cut(),
  };
}

/** The client of another process has all of an answer: it is not given to a further retry. */
export function noteDelivered({ keyId, requestId }: WantedRequest, claims: Ports['claims']): void {
  claims.delivered(keyId, requestId);
}

/** Reads or cancels a response of this process for another one; resolves with its object as JSON, or `null` without one. */
export async function serveResponse(
  { keyId, requestId }: WantedRequest,
  action: ResponseAction,
  ports: Pick<Ports, 'claims' | 'inFlight'>,
): Promise<string | null> {
  const run = findResponse(keyId, requestId, ports.claims);
  if (run === undefined) return null;
  if (action === 'cancel') await cancelRun(run, ports);
  return responseStateOf(run);
}
