import { isRefusal } from '../shared/errors.ts';
import type { Interruption } from '../domain/interruption.ts';
import type { Protocol } from '../protocol/text.ts';
import { admit } from './admit.ts';
import { openAnswer } from './answer-client.ts';
import { authenticate } from './authenticate.ts';
import { conduct } from './conduct.ts';
import { interruptedEnding, refusedEnding } from './endings.ts';
import type { ClientConnection } from './client-connection.ts';
import type { Ending, Exchange, Ports } from './exchange.ts';
import { keepClientAlive } from './keep-alive.ts';
import { normalize } from './normalize.ts';
import { reserve } from './reserve.ts';
import { rewrite } from './rewrite.ts';
import { route } from './route.ts';
import { tryRoutes } from './try-routes.ts';

/** Answers one request for text in the client's protocol. Never rejects. */
export function runExchange(protocol: Protocol, client: ClientConnection, ports: Ports): Promise<void> {
  return conduct(protocol, client, ports, (exchange) => carry(protocol, exchange, ports));
}

/**
 * The stages, in an order that has reasons: no work for strangers, no body read without a slot, nothing sent
 * upstream that is not checked or not paid for, nothing begun for a client that has left, nothing shown that is not
 * recorded.
 */
async function carry(protocol: Protocol, exchange: Exchange, ports: Ports): Promise<Ending> {
  const { client, notes, interruption } = exchange;
  if (client.headFault !== null) return refusedEnding(client.headFault);

  const caller = await authenticate(client.authorization, ports.keys);
  if (isRefusal(caller)) return refusedEnding(caller);
  notes.key = caller;
  client.recognize();

  const key = await admit(caller, exchange, ports);
  if (isRefusal(key)) return refusedEnding(key);

  const compatibility = { ...ports.defaultCompatibility, ...key.compatibility };
  const request = await normalize(protocol, exchange, compatibility);
  if (isRefusal(request)) return refusedEnding(request);

  const chosen = await route(request.model, key, exchange, ports);
  if (isRefusal(chosen)) return refusedEnding(chosen);
  if (interruption.signal.aborted) return interruptedEnding(interruption.signal.reason as Interruption, null);

  const writer = openAnswer(request, exchange);
  using _keepAlive = keepClientAlive(writer, exchange, ports);
  const recordFirst = key.hasBalance || !ports.records.takesWrites;
  const reserving = reserve(key, request, chosen, exchange, ports);
  if (recordFirst) {
    const unpaid = await reserving;
    if (unpaid !== null) return refusedEnding(unpaid);
  }
  const calling = tryRoutes(request, chosen, exchange, ports);
  // Even if the call throws: a record that is begun after its settlement would stay open, and hold its money.
  await Promise.allSettled([calling, reserving]);
  const answer = await calling;
  try {
    const unreserved = await reserving;
    if (unreserved !== null) return refusedEnding(unreserved);
    return 'outcome' in answer ? answer : await rewrite(answer, writer, exchange, ports);
  } finally {
    if (!('outcome' in answer)) answer.release();
  }
}
