import { parse as parseForm } from 'node:querystring';
import { z } from 'zod';
import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { parseJson } from '../../shared/parse-json.ts';
import { sessionMs } from '../admin/access.ts';
import type { Session } from '../admin/access.ts';
import { identify, noteRequests, sessionActs } from '../admin/acts.ts';
import type { NoteAct } from '../admin/acts.ts';
import { tooManyFailures, wrongToken } from '../admin/guard.ts';
import type { GuardPorts } from '../admin/guard.ts';
import { readSession, sessionOf, writeCookie } from '../admin/session-cookie.ts';
import { isForm, readBody } from '../body.ts';
import { check } from '../checked-input.ts';
import { methodNotAllowed } from '../fallback-handlers.ts';
import type { PresentedSession } from '../present/session.ts';
import { sendAnswer, sendNoContent, sendRedirect, sendRefusal } from '../answers/respond.ts';
import { createRouter } from '../router.ts';
import type { Request, Response, Router } from '../router.ts';

/** The largest body of a login, in bytes. */
const maxLoginBytes = 4_096;

/** What the routes of sessions need. */
export interface SessionPorts extends GuardPorts {
  /** Called for each wrong token at the login; the address is `null` where it must not be logged. */
  readonly onFailedLogin: (address: string | null) => void;
  readonly note: NoteAct;
}

/** What a login sends, as JSON or as a form. */
export const login = z.strictObject({ token: z.string().max(maxLoginBytes) });

/** The routes by which a browser changes a token for a session in a cookie, asks for it and ends it. */
export function createSessionRoutes(ports: SessionPorts): Router {
  const { access, pages } = ports;
  const router = createRouter({ caseSensitive: true, strict: true });
  const path = '/console/session';
  router.use(path, noteRequests(sessionActs, ports.note, ports));
  router.get(path, (request, response) => {
    const fault = pages.foreignFault(request);
    const session = fault ?? readSession(request, pages, access);
    sendAnswer(response, 200, isRefusal(session) ? session : present(session));
  });
  router.post(path, (request, response) => openSession(request, response, ports));
  router.delete(path, (request, response) => {
    const fault = pages.foreignFault(request) ?? pages.cookieFault(request);
    if (fault !== null) return sendRefusal(response, fault);
    const session = sessionOf(request, pages, access);
    if (session !== null) {
      identify(request, session, true, ports.addresses);
      access.endSession(session);
    }
    sendNoContent(response, { 'set-cookie': writeCookie(request, pages, '', 0) });
  });
  router.all(path, methodNotAllowed('GET, HEAD, POST, DELETE'));
  return router;
}

async function openSession(request: Request, response: Response, ports: SessionPorts): Promise<void> {
  const { access, addresses, pages } = ports;
  const fault = loginFault(request, ports);
  if (fault !== null) return sendRefusal(response, fault);
  const given = await readLogin(request, response);
  if (isRefusal(given)) return sendRefusal(response, given);
  const holder = access.holderOf(given.token.trim());
  if (holder === null) return sendRefusal(response, refuseToken(addresses.of(request), ports));
  identify(request, holder, true, addresses);
  const { session, proof } = access.openSession(holder);
  response.setHeader('set-cookie', writeCookie(request, pages, proof, sessionMs / 1_000));
  if (!isForm(request)) return sendAnswer(response, 200, present(session));
  sendRedirect(response, 303, './');
}

/**
 * Why a login is not read: another page than the console's sent it, which could log an operator in to a session of its own
 * choice. Browsers send `Origin` with every form and every fetch; only clients that are none may leave both headers out.
 */
function loginFault(request: Request, { pages }: SessionPorts): Refusal | null {
  const { origin, 'sec-fetch-site': site } = request.headers;
  return origin === undefined && site === undefined ? null : pages.cookieFault(request);
}

async function readLogin(request: Request, response: Response): Promise<z.output<typeof login> | Refusal> {
  const bytes = await readBody(request, response, maxLoginBytes, true);
  if (isRefusal(bytes)) return bytes;
  const text = Buffer.from(bytes).toString('utf8');
  const given = isForm(request) ? { ...parseForm(text) } : parseJson(text);
  if (given === undefined) return refuse('invalid_json', 'The request body could not be parsed as JSON.');
  return check(given, login);
}

/** Counts and reports a wrong token, up to the limit of its network. */
function refuseToken(address: string, { access, addresses, onFailedLogin }: SessionPorts): Refusal {
  if (access.isBlocked(address)) return tooManyFailures();
  access.countFailure(address);
  onFailedLogin(addresses.areLogged ? address : null);
  return wrongToken();
}

function present(session: Session | null): PresentedSession {
  if (session === null) return { role: null, name: null, expires_at: null };
  const { role, name, expiresAtMs } = session;
  return { role, name, expires_at: new Date(expiresAtMs).toISOString() };
}
