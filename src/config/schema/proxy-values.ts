import { z } from 'zod';
import { isLinkLocal } from '../../shared/link-local.ts';
import { decodePart } from '../../shared/decode-part.ts';
import { valueKinds } from '../../shared/schema-values.ts';

/** The word for no proxy. */
export const noProxy = 'none';

/** The proxy of an upstream, read into a `URL`, or `none`. */
export const upstreamProxy = z
  .string()
  .transform((text, context) => {
    if (text.trim() === noProxy) return noProxy;
    const read = readProxyUrl(text);
    if (read instanceof URL) return read;
    context.issues.push({ code: 'custom', input: text, message: `${read}, or none` });
    return z.NEVER;
  })
  .register(valueKinds, { kind: 'url' });

const expected = 'expected the address of an HTTP proxy, such as http://proxy.example:3128';

/**
 * Reads the address of a proxy, with the user and password for it; without a scheme it is one of `http://`. Returns what
 * is wrong otherwise, which quotes nothing: the address may hold a password.
 */
export function readProxyUrl(text: string): URL | string {
  const written = text.trim();
  const [, scheme] = /^([a-z][a-z0-9+.-]*):\/\//i.exec(written) ?? [];
  if (scheme?.toLowerCase().startsWith('socks')) return `${expected}: SOCKS is not supported`;
  const url = URL.parse(scheme === undefined ? `http://${written}` : written);
  if (url === null || !/^https?:$/.test(url.protocol) || /\s/.test(written)) return expected;
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') return `${expected}, without a path`;
  if (isLinkLocal(url.hostname)) return `${expected}, which is not a link-local address`;
  const credentials = [url.username, url.password].map(decodePart);
  // The user ends at the first colon of what is sent.
  if (credentials.includes(null) || credentials[0]?.includes(':') === true)
    return `${expected}, with an encoded user and password (%40 for @, %25 for %)`;
  return url;
}

/** The value of `proxy-authorization` for the user and password of an address; `null` if it has neither. */
export function proxyAuthorization({ username, password }: URL): string | null {
  if (username === '' && password === '') return null;
  const credentials = `${decodePart(username) ?? ''}:${decodePart(password) ?? ''}`;
  return `Basic ${Buffer.from(credentials, 'utf8').toString('base64')}`;
}
