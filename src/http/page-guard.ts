import type { Request, RequestHandler } from 'express';
import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import { isLoopback } from '../shared/ip-address.ts';
import { sendRefusal } from './respond.ts';

const loopbackName = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i;

/**
 * Keeps web pages away from everything on a listener that is configured on a loopback address, metrics and probes
 * included: they name models and upstreams. Elsewhere, such as in a container, scrapers and probes come by any name.
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

/** A page in the operator's browser can reach addresses that only the operator should. */
export function originFault({ headers }: Request): Refusal | null {
  if (headers.origin === undefined && headers['sec-fetch-site'] !== 'cross-site') return null;
  return refuse('invalid_api_key', 'Requests from web pages are not accepted here.');
}

/** A page's own name can be made to point at a loopback address. No browser leaves the header out; HTTP/1.0 probes do. */
function hostFault({ headers: { host } }: Request): Refusal | null {
  if (host === undefined || host === '' || loopbackName.test(host)) return null;
  return refuse('invalid_api_key', "On this address the 'Host' header must be a loopback one.");
}
