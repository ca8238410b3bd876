import { z } from 'zod';
import { readIpv6 } from '../../shared/ip-address.ts';
import { readUnless, refuseBy, valueKinds } from '../../shared/schema-values.ts';

/** The end of an endpoint's path, which every dialect adds to the base address itself. */
const endpoint =
  /(\/chat\/completions|\/completions|\/responses|\/messages|\/embeddings|\/models\/[^/]+:\w+|(?<=\/v\d\w*)\/models)\/?$/;

/** The address of an upstream, read into a `URL`. */
export const upstreamUrl = z
  .string()
  .trim()
  .transform(readUnless(describeUrlFault, (text) => new URL(text)))
  .register(valueKinds, { kind: 'url' });

const expectedUrl = 'expected an address such as http://127.0.0.1:8000/v1';

/** What is wrong with the address of an upstream; `null` if nothing is. The address is not quoted: it may hold a key. */
function describeUrlFault(text: string): string | null {
  if (/\s/.test(text)) return `${expectedUrl}, without blanks`;
  const url = URL.parse(text);
  if (url?.protocol === 'demo:') return null;
  if (!/^https?:\/\//i.test(text)) return describeScheme(text);
  // `URL` takes the first part of the path for the host.
  if (/^https?:\/\/[/\\?]/i.test(text)) return `${expectedUrl}: the host is missing`;
  if (url === null) return expectedUrl;
  if (url.username !== '' || url.password !== '')
    return 'expected an address without a user and password: write the key of the upstream into apiKey';
  // It would not be sent, although the config suggests it.
  if (text.includes('#')) return 'expected an address without # and what follows it';
  const [, end] = endpoint.exec(url.pathname) ?? [];
  return end === undefined
    ? null
    : `expected the base address, without an endpoint: leave out ${nameOfEndpoint(end)}`;
}

function describeScheme(text: string): string {
  const [, scheme = ''] = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text) ?? [];
  if (scheme !== '') return `${expectedUrl}, with http:// or https:// at its beginning`;
  return /^[\w.-]+(:\d+)?(\/|$)/.test(text) && /[.:]|^localhost/.test(text)
    ? 'expected http:// or https:// before the host'
    : `${expectedUrl}, or demo: for the built-in demo`;
}

/** The endpoint without the name of a model, which may come from a variable. */
function nameOfEndpoint(end: string): string {
  return end.replace(/^\/models\/.*:/, '/models/<model>:');
}

/** The address at which a listener is opened: a name or an IP address, without a port. */
export const listenHost = z.string().superRefine(refuseBy(describeHostFault));

const expectedHost = 'expected a host name or an IP address, such as 127.0.0.1 or 0.0.0.0';

function describeHostFault(text: string): string | null {
  if (readIpv6(text) !== null || /^[A-Za-z0-9._-]+$/.test(text)) return null;
  if (/^unix:|^\.?\//.test(text))
    return `${expectedHost}: write the path of a unix socket into server.socket`;
  if (/^\w+:\/\//.test(text)) return `${expectedHost}: leave out the scheme, and write the port into port`;
  if (/^(\[.*\]|[^:]*):\d+$/.test(text)) return `${expectedHost}: write the port into port`;
  if (/^\[.*\]$/.test(text)) return 'expected an IPv6 address without brackets, such as ::1';
  return text === '*' ? `${expectedHost}: write 0.0.0.0 for every network` : expectedHost;
}

/** Headers of the connection and of the body, which the gateway or its HTTP client sets itself. */
const ownHeaders =
  /^(host|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|content-.*|accept|accept-encoding)$/i;

const writtenHeaderName = z
  .string()
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'expected a header name')
  .refine((name) => !ownHeaders.test(name), 'the gateway sets this header itself');

/** The name of a header that is sent with every call to an upstream, read in lower case. */
export const headerName = writtenHeaderName.toLowerCase();

/** The value of a header that is sent with every call to an upstream; it may be a secret. */
const headerValue = z
  .string()
  .regex(/^[\t\x20-\x7e]*$/, 'expected printable ASCII')
  .register(valueKinds, { kind: 'secret' });

/** The headers that are sent with every call to an upstream, by name, read in lower case. */
export const upstreamHeaders = z
  .record(writtenHeaderName, headerValue)
  .superRefine((headers, context) => {
    const names = Object.keys(headers);
    for (const [index, name] of names.entries())
      if (names.findIndex((other) => other.toLowerCase() === name.toLowerCase()) < index)
        context.addIssue({ code: 'custom', path: [name], message: 'expected each header only once' });
  })
  .transform((headers) =>
    Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  );
