import type { IncomingMessage } from 'node:http';
import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { readBearer } from '../../pipeline/admission/authenticate.ts';
import type { ClientAddresses } from '../heads/client-addresses.ts';
import { connectionOf } from '../connections/connection.ts';
import { isReading } from '../pages/own-pages.ts';
import type { OwnPages } from '../pages/own-pages.ts';
import { sendRefusal } from '../answers/respond.ts';
import type { Request, RequestHandler, Response } from '../router.ts';
import { failureWindowMs } from './access.ts';
import type { AdminAccess, Session, TokenHolder } from './access.ts';
import { identify } from './acts.ts';
import { readSession, sessionOf } from './session-cookie.ts';

/** What decides who may use the admin API. */
export interface GuardPorts {
  readonly access: AdminAccess;
  readonly addresses: ClientAddresses;
  readonly pages: OwnPages;
}

/** The requests with a read-only token or with a session of one. */
const readers = new WeakSet<IncomingMessage>();

/** How the token or the session of a request is looked up again, and what calls back when it counts no longer. */
const proofs = new WeakMap<
  IncomingMessage,
  { lookUp(): TokenHolder | Refusal | null; whenEnded(onEnd: () => void): () => void }
>();

/** Whether a request that was let through would be so now: a long answer must not outlast what was allowed to ask for it. */
export function isStillAllowed(request: IncomingMessage): boolean {
  const found = proofs.get(request)?.lookUp() ?? null;
  return found !== null && !isRefusal(found);
}

/**
 * Cuts the answer off as soon as the session that asked for it ends, or its token counts no longer, as if its client had left:
 * what costs money at a provider must not go on after a logout.
 */
export function endWithProof(request: IncomingMessage, response: Response): void {
  const cancel = proofs.get(request)?.whenEnded(() => response.destroy());
  if (cancel !== undefined) response.once('close', cancel);
}

/** The refusal of a read-only token on a route whose answer has secrets; `null` for others. */
export function readOnlyFault(request: IncomingMessage): Refusal | null {
  return readers.has(request) ? readOnly() : null;
}

/**
 * Refuses every request without an admin token or the cookie of a session, every request from a foreign web page, and
 * with a read-only token everything but reading. A right token always passes, so that an attacker's wrong ones can't lock
 * the operator out. A request without a token is not counted as a failure, because any web page can make the operator's
 * browser send one; nor is a wrong cookie, which a browser goes on sending after the token was changed. Behind a trusted
 * proxy, the networks are those of its clients.
 */
export function createAdminGuard({ access, addresses, pages }: GuardPorts): RequestHandler {
  return (request, response, next) => {
    const fault = pages.foreignFault(request);
    if (fault !== null) return sendRefusal(response, fault);
    const presented = readBearer(request.headers.authorization);
    const lookUp = (): Session | TokenHolder | Refusal | null =>
      presented === null ? readSession(request, pages, access) : access.holderOf(presented);
    const found = lookUp();
    if (isRefusal(found)) return sendRefusal(response, found);
    if (found !== null) {
      connectionOf(request.socket)?.recognize();
      identify(request, found, presented === null, addresses);
      proofs.set(request, { lookUp, whenEnded: (onEnd) => access.whenEnded(found, onEnd) });
      if (found.role === 'admin') return next();
      readers.add(request);
      return isReading(request) ? next() : sendRefusal(response, readOnly());
    }
    const address = addresses.of(request);
    if (access.isBlocked(address)) return sendRefusal(response, tooManyFailures());
    if (presented !== null) access.countFailure(address);
    sendRefusal(response, wrongToken());
  };
}

/** Whether a request has a right token, or the cookie of a session where it counts. */
export function hasProof(request: Request, { access, pages }: GuardPorts): boolean {
  const presented = readBearer(request.headers.authorization);
  return (presented === null ? sessionOf(request, pages, access) : access.holderOf(presented)) !== null;
}

/** The refusal of a request without a right token. */
export function wrongToken(): Refusal {
  return refuse('invalid_api_key', 'The admin token is missing or wrong.');
}

/** The refusal of a network that has tried too many wrong tokens. */
export function tooManyFailures(): Refusal {
  return refuse('rate_limit_exceeded', 'Too many wrong admin tokens from this network. Wait a minute.', {
    retryAfterMs: failureWindowMs,
  });
}

function readOnly(): Refusal {
  return refuse(
    'read_only_token',
    'A read-only token changes nothing and reads no secret: this needs admin.token, or one of admin.tokens that may change things.',
  );
}
