import type { ConnectionLimits } from '../../domain/edge.ts';
import { refuse } from '../../shared/errors.ts';
import { sendRefusal } from '../answers/respond.ts';
import { pathOf } from '../router.ts';
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
    const path = pathOf(request.url);
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

const quarter = (connections: number): number => Math.ceil(connections / 4);

function shareOf(most: Share['most'], inProgress: string, advice: string): Share {
  const full = (limit: number): string => `${limit} ${inProgress} are in progress already. ${advice}`;
  return { taken: 0, most, full };
}

/** The shares of one listener: an eighth of its connections is for the kept paths alone. */
function createShares() {
  return {
    all: shareOf((all) => all - Math.ceil(all / 8), 'requests of operators', 'End one of them.'),
    long: shareOf(quarter, 'try-outs, doctor runs, backups and archives', 'End one of them.'),
    // Two browsers that load the page of the login have twelve connections.
    unproven: shareOf(
      quarter,
      'requests without a right token or session, as of logins,',
      'Try again in a moment.',
    ),
  };
}
