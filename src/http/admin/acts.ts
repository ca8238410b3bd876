import type { IncomingMessage } from 'node:http';
import { keyEntry } from '../../domain/audit/audit-line.ts';
import type { Actor, AuditAction, AuditEntry } from '../../domain/audit/audit-line.ts';
import { idIn, nameOf } from '../../domain/audit/safe-text.ts';
import type { SafeText } from '../../domain/audit/safe-text.ts';
import { commandAgent } from '../../shared/command-agent.ts';
import { decodePart } from '../../shared/decode-part.ts';
import { refusalOf } from '../answers/respond.ts';
import { queryOf } from '../checked-input.ts';
import type { ClientAddresses } from '../heads/client-addresses.ts';
import { createRouter, pathOf } from '../router.ts';
import type { RequestHandler } from '../router.ts';
import { readBearer } from '../../pipeline/admission/authenticate.ts';
import type { AdminAccess, TokenHolder } from './access.ts';
import { ownerOf } from './session-cookie.ts';
import { templateOf } from './path-template.ts';

/** What takes lines of the audit. */
export type NoteAct = (entry: AuditEntry) => void;

/** Who sent a request that was let through. */
const actors = new WeakMap<IncomingMessage, Actor>();

/** Says whose request one is, with a token or a session. */
export function identify(
  request: IncomingMessage,
  holder: TokenHolder,
  hasSession: boolean,
  addresses: ClientAddresses,
): void {
  actors.set(request, describeActor(request, holder, hasSession, addresses));
}

function describeActor(
  request: IncomingMessage,
  { name }: TokenHolder,
  hasSession: boolean,
  addresses: ClientAddresses,
): Actor {
  const isCommand = request.headers['user-agent']?.startsWith(commandAgent) === true;
  const way = hasSession ? 'console' : isCommand ? 'cli' : 'admin_api';
  return { way, name, address: loggedAddress(request, addresses) };
}

/** Whose right token or session a request has that was refused all the same, as where another page sent it; or `null`. */
function findOwner(request: IncomingMessage, { access, addresses }: ActPorts): Actor | null {
  const presented = readBearer(request.headers.authorization);
  const holder = presented === null ? ownerOf(request, access) : access.holderOf(presented);
  return holder && describeActor(request, holder, presented === null, addresses);
}

/** Who sent a request that the guard has let through. */
export function actorOf(request: IncomingMessage): Actor {
  const actor = actors.get(request);
  if (actor === undefined) throw new Error('a route was asked without its guard');
  return actor;
}

/** The address of a client, where addresses are logged and it is known. */
function loggedAddress(request: IncomingMessage, addresses: ClientAddresses): string | null {
  const address = addresses.areLogged ? addresses.of(request) : '';
  return address === '' ? null : address;
}

/** What a request does, by its method and the path below the router that is watched. */
interface Act {
  readonly request: RegExp;
  readonly action: AuditAction;
  /** Where the line of what was done comes from: what changes a key stores it with the change, a try-out notes its end. */
  readonly line: 'of the act' | 'noted';
}

const act = (request: RegExp, action: AuditAction, line: Act['line'] = 'noted'): Act => {
  return { request, action, line };
};

/** What operators do below `/admin`. An id or a name in the path is that of the subject. */
export const adminActs: readonly Act[] = [
  act(/^POST \/keys\/?$/i, 'key.create', 'of the act'),
  act(/^POST \/keys\/import\/?$/i, 'key.create', 'of the act'),
  act(/^PATCH \/keys\/([^/]+)\/?$/i, 'key.change', 'of the act'),
  act(/^DELETE \/keys\/([^/]+)\/?$/i, 'key.revoke', 'of the act'),
  act(/^POST \/keys\/([^/]+)\/rotate\/?$/i, 'key.rotate', 'of the act'),
  act(/^POST \/keys\/([^/]+)\/credits\/?$/i, 'key.credit', 'of the act'),
  act(/^POST \/in-flight\/([^/]+)\/cancel\/?$/i, 'request.cancel'),
  act(/^POST \/try\/(?:chat\/completions|responses)\/?$/, 'request.try', 'of the act'),
  act(/^POST \/archive\/removals\/?$/i, 'records.remove'),
  act(/^POST \/archive\/folds\/?$/i, 'ledger.fold'),
  act(/^POST \/webhooks\/events\/([^/]+)\/resend\/?$/i, 'webhook.resend'),
  act(/^POST \/webhooks\/([^/]+)\/test\/?$/i, 'webhook.test'),
  act(/^GET \/backup\/?$/i, 'database.backup'),
];

/** What a browser does at `/console/session`. */
export const sessionActs: readonly Act[] = [act(/^POST /, 'session.open'), act(/^DELETE /, 'session.end')];

/** The requests of acts that have changed nothing. */
const idle = new WeakSet<IncomingMessage>();

/** Says that a request has changed nothing, so that it leaves no line. */
export function leaveUnnoted(request: IncomingMessage): void {
  idle.add(request);
}

/** What is needed to say what a request was about, and where it came from. */
interface ActPorts {
  readonly access: AdminAccess;
  readonly addresses: ClientAddresses;
  /** Whether there is a webhook of a name: any other text in its place may be a secret. */
  readonly webhooks?: { has(name: string): boolean };
}

/**
 * Notes the acts among the requests below a path once they are answered: those that were done, unless they store their lines
 * themselves, and those that were refused; and all other requests below it that had no right token, or only a reading one
 * where that is not enough. An act goes on when its client leaves before it is answered, and so has a line then, too.
 */
export function noteRequests(acts: readonly Act[], note: NoteAct, ports: ActPorts): RequestHandler {
  return (request, response, next) => {
    const path = pathOf(request.url);
    const asked = `${request.method} ${path}`;
    const found = acts.find((each) => each.request.test(asked));
    const about = found === undefined ? null : aboutWhat(found, asked, queryOf(request), ports);
    const address = loggedAddress(request, ports.addresses);
    response.once('close', () => {
      const code = refusalOf(response);
      const actor = actors.get(request);
      if (idle.has(request)) return;
      if (code === null && (found?.line !== 'noted' || actor === undefined)) return;
      const isRefusedEntry = actor === undefined || code === 'read_only_token';
      if (found === undefined && (acts !== adminActs || !isRefusedEntry)) return;
      const stranger = { way: acts === adminActs ? 'admin_api' : 'console', name: null, address } as const;
      // A login counts by the token that it sends, and not by an earlier session.
      const findWho = () => (found?.action === 'session.open' ? null : findOwner(request, ports)) ?? stranger;
      const entry = keyEntry(actor ?? findWho(), found?.action ?? 'admin.call', null, []);
      note({
        ...entry,
        ...(about ?? { subject: templateOf(request.method, path) }),
        result: code ?? (response.headersSent ? 'done' : 'unanswered'),
      });
    });
    next();
  };
}

/** Notes what is refused before the routes of operators are asked, by its whole path. */
export function noteRefused(ports: () => ActPorts & { readonly note: NoteAct }): RequestHandler {
  const noting =
    (acts: readonly Act[]): RequestHandler =>
    (...call) =>
      noteRequests(acts, ports().note, ports())(...call);
  return createRouter({ caseSensitive: true })
    .use('/admin', noting(adminActs))
    .use('/console/session', noting(sessionActs));
}

/** What an act is about: a text in the place of an id or a name that is none may be a secret, and is left out. */
function aboutWhat(
  { request, action }: Act,
  asked: string,
  query: string,
  { webhooks }: ActPorts,
): { readonly keyId: SafeText | null; readonly subject: SafeText | null } {
  if (action === 'request.try') return { keyId: idIn(new URLSearchParams(query).get('key')), subject: null };
  const [, part = ''] = request.exec(asked) ?? [];
  const text = decodePart(part) ?? '';
  const id = idIn(text);
  if (action.startsWith('key.')) return { keyId: id, subject: null };
  const isWebhook = action === 'webhook.test' && webhooks?.has(text) === true;
  return { keyId: null, subject: isWebhook ? nameOf(text) : id };
}
