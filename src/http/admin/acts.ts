import type { IncomingMessage } from 'node:http';
import type { Actor, AuditAction, AuditEntry } from '../../domain/audit/audit-line.ts';
import { commandAgent } from '../../shared/command-agent.ts';
import { decodePart } from '../../shared/decode-part.ts';
import { searchableId } from '../../shared/storable-text.ts';
import { refusalOf } from '../answers/respond.ts';
import type { ClientAddresses } from '../heads/client-addresses.ts';
import { pathOf } from '../router.ts';
import type { RequestHandler } from '../router.ts';
import type { TokenHolder } from './access.ts';

/** The longest id or path that a line has, in characters. */
const maxSubjectLength = 200;

/** What takes lines of the audit. */
export type NoteAct = (entry: AuditEntry) => void;

/** Who sent a request that was let through. */
const actors = new WeakMap<IncomingMessage, Actor>();

/** Says whose request one is, with a token or a session. */
export function identify(
  request: IncomingMessage,
  { name }: TokenHolder,
  hasSession: boolean,
  addresses: ClientAddresses,
): void {
  const isCommand = request.headers['user-agent']?.startsWith(commandAgent) === true;
  const way = hasSession ? 'console' : isCommand ? 'cli' : 'admin_api';
  actors.set(request, { way, name, address: loggedAddress(request, addresses) });
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

/** What operators do below `/admin`. An id in the path is that of the subject. */
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

/**
 * Notes the acts among the requests below a path once they are answered: those that were done, unless they store their lines
 * themselves, and those that were refused; and all other requests below it that had no right token, or only a reading one
 * where that is not enough. An act goes on when its client leaves before it is answered, and so has a line then, too.
 */
export function noteRequests(
  acts: readonly Act[],
  note: NoteAct,
  { addresses }: { readonly addresses: ClientAddresses },
): RequestHandler {
  return (request, response, next) => {
    const asked = `${request.method} ${pathOf(request.url)}`;
    const found = acts.find((each) => each.request.test(asked));
    const [, id] = found?.request.exec(asked) ?? [];
    const address = loggedAddress(request, addresses);
    response.once('close', () => {
      const code = refusalOf(response);
      const actor = actors.get(request);
      if (code === null && (found?.line !== 'noted' || actor === undefined)) return;
      const isRefusedEntry = actor === undefined || code === 'read_only_token';
      if (found === undefined && (acts !== adminActs || !isRefusedEntry)) return;
      const isOfKey = found?.action.startsWith('key.') === true;
      const subject =
        found === undefined ? shorten(asked) : id === undefined ? null : shorten(decodePart(id) ?? id);
      note({
        actor: actor ?? { way: acts === adminActs ? 'admin_api' : 'console', name: null, address },
        action: found?.action ?? 'admin.call',
        keyId: isOfKey ? subject : null,
        subject: isOfKey ? null : subject,
        result: code ?? (response.headersSent ? 'done' : 'unanswered'),
        times: 1,
        changes: [],
      });
    });
    next();
  };
}

/** What a client sent as an id, as a line has it. */
export function shorten(text: string): string {
  return searchableId(text.length > maxSubjectLength ? `${text.slice(0, maxSubjectLength)}…` : text);
}
