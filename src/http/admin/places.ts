import type { ConnectionLimits } from '../../domain/edge.ts';
import { refuse } from '../../shared/errors.ts';
import { sendRefusal } from '../answers/respond.ts';
import type { Request, RequestHandler } from '../router.ts';

/** What probes and scrapers ask, which a full listener must answer: without an answer the process would be restarted. */
const keptPaths = new Set(['/healthz', '/readyz', '/metrics']);

/**
 * The answers that may last for minutes: of try-outs, doctor runs, backups and archives. Streams of the status have a limit
 * of their own.
 */
const longPaths =
  /^\/admin\/(try\/(chat\/completions|responses)|upstreams\/[^/]+\/doctor|backup|archive)\/?$/i;

/** When a client that was refused may come again, in milliseconds. */
const againMs = 1_000;

/** A share of the listener's connections, for requests in progress. */
interface Share {
  taken: number;
  /** The most requests of it, of so many connections. */
  readonly most: (connections: number) => number;
  /** What one more is told. */
  readonly full: (most: number) => string;
}

/**
 * Keeps connections of the operators' listener free: for probes and scrapers, for the short requests of other operators
 * beside the long ones of one, and for operators beside those who have no token. A connection with an answer in progress is
 * never closed for a new one, so without this one session could keep everybody else out, and so could anyone with logins
 * whose bodies never come. `isProven` tells whether a request has a token or a session. A refusal closes its connection.
 */
export function keepPlaces(
  limits: () => ConnectionLimits,
  isProven: (request: Request) => boolean,
): RequestHandler {
  const { all, long, unproven } = createShares();
  return (request, response, next) => {
    const [path = ''] = request.url.split('?', 1);
    if (keptPaths.has(path)) return next();
    const { maxConnections } = limits();
    const shares = !isProven(request) ? [unproven, all] : longPaths.test(path) ? [all, long] : [all];
    const full = shares.find(({ taken, most }) => taken >= most(maxConnections));
    if (full !== undefined) {
      response.shouldKeepAlive = false;
      const message = full.full(full.most(maxConnections));
      return sendRefusal(response, refuse('overloaded', message, { retryAfterMs: againMs }));
    }
    for (const share of shares) share.taken += 1;
    response.once('close', () => {
      for (const share of shares) share.taken -= 1;
    });
    next();
  };
}

/** The shares of one listener: an eighth of its connections is for the kept paths alone. */
function createShares() {
  const all: Share = {
    taken: 0,
    most: (connections) => connections - Math.ceil(connections / 8),
    full: (most) => `${most} requests of operators are in progress already. End one of them.`,
  };
  const long: Share = {
    taken: 0,
    most: (connections) => Math.ceil(connections / 4),
    full: (most) =>
      `${most} try-outs, doctor runs, backups and archives are in progress already. End one of them.`,
  };
  // Two browsers that load the page of the login have twelve connections.
  const unproven: Share = {
    taken: 0,
    most: (connections) => Math.ceil(connections / 4),
    full: (most) =>
      `${most} requests without a right token or session, as of logins, are in progress already. Try again in a moment.`,
  };
  return { all, long, unproven };
}
