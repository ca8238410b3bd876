import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { isLoopback } from '../shared/ip-address.ts';
import { sendRefusal } from './respond.ts';
import type { Request, RequestHandler } from './router.ts';

const loopbackName = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

/**
 * Refuses requests from web pages on a listener with a loopback address, including those for metrics and probes, which
 * name models and upstreams. On other addresses, such as in a container, scrapers and probes use any host name.
 */
export function createPageGuard(configuredHost: string): RequestHandler {
  if (configuredHost.toLowerCase() !== 'localhost' && !isLoopback(configuredHost))
    return (_request, _response, next) => next();
  return (request, response, next) => {
    const fault = originFault(request) ?? hostFault(request);
    if (fault === null) next();
    else sendRefusal(response, fault);
  };
}

/**
 * Refuses requests of web pages: a page in the operator's browser can reach addresses that only the operator should.
 */
export function originFault({ headers }: Request): Refusal | null {
  if (headers.origin === undefined && headers['sec-fetch-site'] !== 'cross-site') return null;
  return refuse('invalid_api_key', 'Requests from web pages are not accepted here.');
}

/**
 * Refuses other host names than loopback ones: a page's own name can be made to resolve to a loopback address. Requests
 * without the header pass: no browser leaves it out, but HTTP/1.0 probes do.
 */
function hostFault({ headers: { host } }: Request): Refusal | null {
  if (host === undefined || host === '' || loopbackName.test(host)) return null;
  return refuse('invalid_api_key', "On this address the 'Host' header must name a loopback address.");
}
