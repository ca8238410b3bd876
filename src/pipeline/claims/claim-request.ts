import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { formatUsd } from '../../shared/money.ts';
import { digest, digestOf } from '../../shared/digest.ts';
import type { ClaimName, StoredClaim } from '../../domain/ports/claims.ts';
import { refuseIfAway, storageUnavailable } from '../../domain/storage-refusal.ts';
import { inTime } from '../../domain/time-limit.ts';
import type { TextRequest } from '../../protocol/text.ts';
import { createAnswerWriter } from '../delivery/send-answer.ts';
import { stopWithoutClients } from '../delivery/watch-disconnect.ts';
import type { Exchange } from '../exchange.ts';
import type { Ports } from '../ports.ts';
import { interruptedBy, refused } from '../results.ts';
import type { ExchangeResult } from '../results.ts';
import type { Identified } from '../stages.ts';
import type { ClaimedRun } from './claimed-run.ts';
import { maxJoinsOfKey, maxJoinsOfRequest, maxLookUpsOfKey } from './running-claims.ts';

/** The header in which a client names a request that is to run once, however often it is sent. It is never forwarded. */
export const claimHeader = 'idempotency-key';

/** What it may be. */
const claimPattern = /^[\x21-\x7e]{1,255}$/;

/** How long a write of a claim is waited for, in milliseconds: a request that waits holds its slot. */
const maxWriteMs = 10_000;

/** When a client is to send a request again that runs elsewhere, or that too many wait for, in milliseconds. */
const retryMs = 1_000;

/**
 * Looks for what the client of a request has named before: a request of this process that runs, or has ended, is joined, which
 * takes no slot, and costs nothing. Returns how that has ended, or why the request is refused; `null` where it is to run,
 * and then the exchange has the run that asks for the claim.
 */
export async function joinOrClaim(
  sent: string,
  identified: Identified,
  exchange: Exchange,
  ports: Pick<Ports, 'claims' | 'clock' | 'inFlight'>,
): Promise<ExchangeResult | null> {
  if (!claimPattern.test(sent)) return refused(malformedName());
  const claim = { keyId: identified.key.id, name: digest(sent) };
  for (;;) {
    const known = ports.claims.find(claim);
    const result =
      known === undefined
        ? await begin(claim, exchange, ports)
        : await join(known, identified, exchange, ports);
    if (result !== 'freed') return result;
  }
}

/** Notes what a request asks, once its body is read. */
export function noteRequest(exchange: Exchange, body: Uint8Array): void {
  if (exchange.claim !== null) exchange.claim.request = requestDigest(exchange, body);
}

/** All that decides what is asked: the path, what it may cost, and the body, byte for byte. */
function requestDigest(
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
  { claims, clock, records, telemetry }: Pick<Ports, 'claims' | 'clock' | 'records' | 'telemetry'>,
): Promise<Refusal | null> {
  const { id, requestId, arrivedAtMs, interruption, delivery } = exchange;
  // What an earlier process has left may still be settled, or the record could not be begun.
  if (!records.takesWrites) return storageUnavailable();
  const { lostLeases } = claims;
  run.isStored = true;
  const asked = { ...run.claim, request: run.request ?? '' };
  const writing = claims.store.beginClaim(asked, requestId);
  writing.catch((error: unknown) => telemetry.fault('a claim could not be written', error));
  const hasClaim = await inTime(writing, maxWriteMs, clock);
  if (hasClaim === null) return storageUnavailable();
  if (!hasClaim) run.isStored = false;
  if (!hasClaim || claims.lostLeases !== lostLeases) return runsElsewhere();
  const { signal } = interruption;
  // It ends at once, and nothing of it is for anyone.
  if (signal.aborted) return null;
  signal.addEventListener('abort', () => run.stop());
  run.run({ request: withoutPrompt(request), id, arrivedAtMs }, delivery, {
    left: () => stopWithoutClients(exchange, clock),
    lost: () => interruption.abort('lost'),
  });
  return null;
}

/** A request without its prompt, which may be large, and is kept as long as its answer. */
function withoutPrompt({ turns: _turns, ...request }: TextRequest): Omit<TextRequest, 'turns'> {
  return request;
}

/** Begins a run of a claim that this process does not know, unless another one runs it, or it was answered before. */
async function begin(
  claim: ClaimName,
  exchange: Exchange,
  ports: Pick<Ports, 'claims' | 'clock' | 'inFlight'>,
): Promise<ExchangeResult | null> {
  const endLookUp = ports.claims.lookUp(claim.keyId);
  if (endLookUp === null) return refused(tooManyLookUps());
  const run = ports.claims.begin(claim, exchange.requestId);
  exchange.claim = run;
  const refusal = await refuseStored(run, exchange, ports).catch(refuseIfAway).finally(endLookUp);
  if (refusal === null) return null;
  run.leave();
  exchange.claim = null;
  return refused(refusal);
}

/** Why what is stored of a claim leaves no room for a run; `null` where it does. */
async function refuseStored(
  { claim }: ClaimedRun,
  exchange: Exchange,
  { claims, clock, inFlight }: Pick<Ports, 'claims' | 'clock' | 'inFlight'>,
): Promise<Refusal | null> {
  const { store } = claims;
  const stored = await store.findClaim(claim);
  if (stored === null || stored.state === 'free') return null;
  const { state, requestId } = stored;
  if (state === 'own' && !inFlight.has(requestId)) {
    // Of a request that could not say what became of it, as while the database was away.
    await inTime(store.freeClaim(claim, requestId), maxWriteMs, clock);
    return null;
  }
  const body = await readBody(exchange, claims, claim.keyId);
  if (isRefusal(body)) return body;
  if (requestDigest(exchange, body) !== stored.request) return otherRequest();
  return state === 'ended' ? replayUnavailable(stored, claim, store) : runsElsewhere();
}

/** Reads the body of a request that has no slot, unless that was done before. */
async function readBody(
  exchange: Exchange,
  claims: Ports['claims'],
  keyId: string,
): Promise<Uint8Array | Refusal> {
  if (exchange.body !== null) return exchange.body;
  const end = claims.read(keyId);
  if (end === null) return tooManyJoins();
  try {
    const body = await exchange.client.readBody();
    if (!isRefusal(body)) exchange.body = body;
    return body;
  } finally {
    end();
  }
}

/** Has a client join a request of this process; `freed` where that has come to nothing, and the client's own one may run. */
async function join(
  run: ClaimedRun,
  { key }: Identified,
  exchange: Exchange,
  { claims }: Pick<Ports, 'claims'>,
): Promise<ExchangeResult | 'freed'> {
  const leave = claims.join(run);
  if (leave === null) return refused(tooManyJoins());
  try {
    const body = exchange.body ?? (await exchange.client.readBody());
    if (isRefusal(body)) return refused(body);
    exchange.body = body;
    const { signal } = exchange.interruption;
    await Promise.race([run.known, raised(signal)]);
    if (signal.aborted) return interruptedBy(signal, null);
    const { asked, phase, answer } = run;
    if (phase === 'freed') return 'freed';
    if (asked === null) throw new Error('a claim is known whose run is not');
    if (run.request !== requestDigest(exchange, body)) return refused(otherRequest());
    exchange.body = null;
    if (!answer.isWhole) return refused(tooLongToJoin());
    const isReplay = phase === 'ended';
    exchange.stage = { stage: 'joined', key, asked, requestId: run.requestId };
    const { delivery } = exchange;
    delivery.begin(createAnswerWriter(asked.request, asked));
    delivery.permit();
    if (await answer.listen(delivery, signal)) return { kind: 'joined', isReplay };
    // Else it was cut off, which its connection shows later.
    return signal.aborted ? interruptedBy(signal, null) : cutOff;
  } finally {
    leave();
  }
}

/** The end of a client that was too far behind an answer that is not kept. */
const cutOff: ExchangeResult = { kind: 'interrupted', interruption: 'client_closed', usage: null };

/** Resolves when a signal is raised. */
function raised(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

function malformedName(): Refusal {
  return refuse(
    'invalid_value',
    `The header '${claimHeader}' must be 1 to 255 visible ASCII characters without spaces, such as a UUID.`,
    { param: claimHeader },
  );
}

function otherRequest(): Refusal {
  return refuse(
    'idempotency_key_reused',
    `The header '${claimHeader}' was sent before with another request: another path, body, byte for byte, or 'x-textgate-max-cost'. Send a new one with each new request.`,
    { param: claimHeader },
  );
}

function runsElsewhere(): Refusal {
  return refuse(
    'request_in_progress',
    `The request with this '${claimHeader}' is running in another process of this service. Send it again shortly.`,
    { retryAfterMs: retryMs },
  );
}

function tooManyJoins(): Refusal {
  return refuse(
    'concurrency_limit_exceeded',
    `Too many clients wait for the same answers: ${maxJoinsOfRequest} may join one request, and ${maxJoinsOfKey} all requests of a key.`,
    { retryAfterMs: retryMs },
  );
}

function tooManyLookUps(): Refusal {
  return refuse(
    'concurrency_limit_exceeded',
    `Too many requests of this key with an '${claimHeader}' came at a time: ${maxLookUpsOfKey} of them are looked up at once.`,
    { retryAfterMs: retryMs },
  );
}

function tooLongToJoin(): Refusal {
  return refuse(
    'replay_unavailable',
    `The request with this '${claimHeader}' is running, and its answer is too long to be kept: it can't be joined any more.`,
    { param: claimHeader },
  );
}

async function replayUnavailable(
  { requestId }: StoredClaim,
  { keyId }: ClaimName,
  store: Pick<Ports['claims']['store'], 'findRecord'>,
): Promise<Refusal> {
  const record = await store.findRecord(requestId, keyId);
  const charge = record === null ? '' : ` and was charged ${formatUsd(record.chargeNanos)} USD`;
  return refuse(
    'replay_unavailable',
    `The request with this '${claimHeader}' was answered before: it is ${requestId}${charge}. Its answer is not kept any more, or was cut off. To have it answered anew, send another '${claimHeader}'.`,
    { param: claimHeader },
  );
}
