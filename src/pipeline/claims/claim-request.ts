import { isRefusal } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { digest, digestOf } from '../../shared/digest.ts';
import type { ClaimName, StoredClaim } from '../../domain/ports/claims.ts';
import { refuseIfAway, storageUnavailable } from '../../domain/storage-refusal.ts';
import { inTime } from '../../domain/time-limit.ts';
import type { TextRequest } from '../../protocol/text.ts';
import { stopWithoutClients } from '../delivery/watch-disconnect.ts';
import type { Exchange } from '../exchange.ts';
import type { Ports } from '../ports.ts';
import { refused } from '../results.ts';
import type { ExchangeResult } from '../results.ts';
import type { Identified } from '../stages.ts';
import {
  malformedName,
  nothingToGoOnWith,
  otherRequest,
  replayUnavailable,
  runsElsewhere,
  tooManyJoins,
  tooManyLookUps,
} from './claim-refusals.ts';
import type { ClaimedRun } from './claimed-run.ts';
import { dropBody, readBodyEarly } from './early-body.ts';
import { readPlace } from './event-place.ts';
import { joinAnswer, waitForRun } from './join-answer.ts';
import type { Joiner } from './join-answer.ts';
import { asItIs, joinElsewhere } from './join-elsewhere.ts';

/** What a name may be. */
const claimPattern = /^[\x21-\x7e]{1,255}$/;

/** How long a write of a claim is waited for, in milliseconds: a request that waits holds its slot. */
const maxWriteMs = 10_000;

/**
 * Looks for what the client of a request has named before: a request of this process that runs, or has ended, is joined, which
 * takes no slot, and costs nothing. Returns how that has ended, or why the request is refused; `null` where it is to run,
 * and then the exchange has the run that asks for the claim, if it is named.
 */
export async function joinOrClaim(
  { key }: Identified,
  exchange: Exchange,
  ports: Pick<Ports, 'claims' | 'clock' | 'inFlight'>,
): Promise<ExchangeResult | null> {
  const { client } = exchange;
  const place = readPlace(client);
  if (isRefusal(place)) return refused(place);
  if (client.claim === undefined) return null;
  if (!claimPattern.test(client.claim)) return refused(malformedName());
  const claim = { keyId: key.id, name: digest(client.claim) };
  const joiner = { key, place };
  for (;;) {
    const known = ports.claims.find(claim);
    const result =
      known === undefined
        ? await begin(claim, joiner, exchange, ports)
        : await join(known, joiner, exchange, ports);
    if (result !== 'freed') return result;
  }
}

/** Notes what a request asks, once its body is read. */
export function noteRequest(exchange: Exchange, body: Uint8Array): void {
  if (exchange.claim !== null) exchange.claim.request = requestDigest(exchange, body);
}

/** All that decides what is asked: the path, what it may cost, and the body, byte for byte. */
export function requestDigest(
  { protocol, client }: Pick<Exchange, 'protocol' | 'client'>,
  body: Uint8Array,
): string {
  return digestOf(`${protocol}\n${client.maxCost ?? ''}\n`, body);
}

/**
 * Has a request run its claim, on the disk, before anything is sent upstream; returns why it may not. From then on its answer
 * goes to all who ask for it.
 */
export async function takeClaim(
  run: ClaimedRun,
  request: TextRequest,
  exchange: Exchange,
  ports: Pick<Ports, 'claims' | 'clock' | 'records' | 'telemetry'>,
): Promise<Refusal | null> {
  const { id, arrivedAtMs, interruption, delivery } = exchange;
  const refusal = run.claim === null ? null : await storeClaim(run, run.claim, exchange, ports);
  if (refusal !== null) return refusal;
  const { signal } = interruption;
  // It ends at once, and nothing of it is for anyone.
  if (signal.aborted) return null;
  signal.addEventListener('abort', () => run.stop());
  const isNamed = run.claim !== null;
  run.run({ request: withoutPrompt(request), id, arrivedAtMs, isNamed }, delivery, {
    left: () => stopWithoutClients(exchange, ports.clock),
    lost: () => interruption.abort('lost'),
  });
  return null;
}

/** Writes a claim; returns why its request may not run it. */
async function storeClaim(
  run: ClaimedRun,
  claim: ClaimName,
  { requestId }: Exchange,
  { claims, clock, records, telemetry }: Pick<Ports, 'claims' | 'clock' | 'records' | 'telemetry'>,
): Promise<Refusal | null> {
  // What an earlier process has left may still be settled, or the record could not be begun.
  if (!records.takesWrites) return storageUnavailable();
  const { lostLeases } = claims;
  // Others may run what is claimed under a lease that can't be renewed.
  if (!claims.holdsLease) return storageUnavailable();
  run.isStored = true;
  const writing = claims.store.beginClaim({ ...claim, request: run.request ?? '' }, requestId);
  writing.catch((error: unknown) => telemetry.fault('a claim could not be written', error));
  const hasClaim = await inTime(writing, maxWriteMs, clock);
  if (hasClaim === null) return storageUnavailable();
  if (!hasClaim) run.isStored = false;
  return hasClaim && claims.holdsLease && claims.lostLeases === lostLeases ? null : runsElsewhere();
}

/** A request without its prompt, which may be large, and is kept as long as its answer. */
function withoutPrompt({ turns: _turns, ...request }: TextRequest): Omit<TextRequest, 'turns'> {
  return request;
}

/** Begins a run of a claim that this process does not know, unless another one runs it, or it was answered before. */
async function begin(
  claim: ClaimName,
  joiner: Joiner,
  exchange: Exchange,
  ports: Pick<Ports, 'claims' | 'clock' | 'inFlight'>,
): Promise<ExchangeResult | null> {
  const endLookUp = ports.claims.lookUp(claim.keyId);
  if (endLookUp === null) return refused(tooManyLookUps());
  const run = ports.claims.begin(claim, exchange.requestId);
  exchange.claim = run;
  const found = await lookUp(claim, exchange, ports).catch(refuseIfAway).finally(endLookUp);
  // The answer of another run would not be the rest of what the client has got.
  const elsewhere = found ?? (joiner.place === null ? null : nothingToGoOnWith());
  if (elsewhere === null) return null;
  run.leave();
  exchange.claim = null;
  return isRefusal(elsewhere)
    ? refused(elsewhere)
    : joinStored(elsewhere, claim, joiner, exchange, ports.claims);
}

/** What is stored of a claim, where that leaves no room for a run, or why the request is refused; `null` where it may run. */
async function lookUp(
  claim: ClaimName,
  exchange: Exchange,
  { claims, clock, inFlight }: Pick<Ports, 'claims' | 'clock' | 'inFlight'>,
): Promise<StoredClaim | Refusal | null> {
  const { store } = claims;
  const stored = await store.findClaim(claim);
  if (stored === null || stored.state === 'free') return null;
  const { state, requestId } = stored;
  if (state === 'own' && !inFlight.has(requestId)) {
    // Of a request that could not say what became of it, as while the database was away.
    await inTime(store.freeClaim(claim, requestId), maxWriteMs, clock);
    return null;
  }
  const body = await readBodyEarly(exchange, claim.keyId, claims);
  if (isRefusal(body)) return body;
  return requestDigest(exchange, body) === stored.request ? stored : otherRequest();
}

/** Has a client join a request that another process runs, or whose answer it has; or says why it gets no answer. */
async function joinStored(
  stored: StoredClaim,
  claim: ClaimName,
  joiner: Joiner,
  exchange: Exchange,
  claims: Ports['claims'],
): Promise<ExchangeResult> {
  const { state, owner, requestId } = stored;
  dropBody(exchange);
  if (owner !== null && state !== 'own') {
    const wanted = { kind: 'request', keyId: claim.keyId, requestId } as const;
    const joined = await joinElsewhere(wanted, { owner, as: asItIs }, joiner, exchange, claims);
    if (joined !== 'none') return joined;
  }
  return refused(state === 'ended' ? await replayUnavailable(stored, claim, claims.store) : runsElsewhere());
}

/** Has a client join a request of this process; `freed` where that has come to nothing, and the client's own one may run. */
async function join(
  run: ClaimedRun,
  joiner: Joiner,
  exchange: Exchange,
  { claims }: Pick<Ports, 'claims'>,
): Promise<ExchangeResult | 'freed'> {
  const leave = claims.join(run);
  if (leave === null) return refused(tooManyJoins());
  try {
    const body = await readBodyEarly(exchange, run.keyId, claims);
    if (isRefusal(body)) return refused(body);
    const stopped = await waitForRun(run, exchange);
    if (stopped !== null) return stopped;
    const { asked } = run;
    if (run.phase === 'freed') return 'freed';
    if (asked === null) throw new Error('a claim is known whose run is not');
    if (run.request !== requestDigest(exchange, body)) return refused(otherRequest());
    dropBody(exchange);
    return await joinAnswer(run, asked, joiner, exchange);
  } finally {
    leave();
  }
}
