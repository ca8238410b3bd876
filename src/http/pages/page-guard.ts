import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { isLoopback } from '../../shared/ip-address.ts';
import type { OwnPages } from './own-pages.ts';
import { sendRefusal } from '../answers/respond.ts';
import type { Request, RequestHandler } from '../router.ts';

/**
 * Refuses requests from foreign web pages on a listener with a loopback address, including those for metrics and probes,
 * which name models and upstreams. On other addresses, such as in a container, scrapers and probes use any host name.
 */
export function createPageGuard(configuredHost: string, pages: () => OwnPages): RequestHandler {
  if (configuredHost.toLowerCase() !== 'localhost' && !isLoopback(configuredHost))
    return (_request, _response, next) => next();
  return (request, response, next) => {
    const fault = pages().foreignFault(request) ?? hostFault(request, pages());
    if (fault === null) next();
    else sendRefusal(response, fault);
  };
}

/**
 * Refuses other host names than loopback ones and those of `admin.hosts`: a page's own name can be made to resolve to a
 * loopback address. Requests without the header pass: no browser leaves it out, but HTTP/1.0 probes do.
 */
function hostFault(request: Request, pages: OwnPages): Refusal | null {
  const { host } = request.headers;
  if (host === undefined || host === '' || pages.isOwnHost(request)) return null;
  return refuse(
    'invalid_api_key',
    "On this address the 'Host' header must name a loopback address, or one of admin.hosts.",
  );
}
