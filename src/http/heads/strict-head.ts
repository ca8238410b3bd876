import { METHODS } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import {
  badRequest,
  expectationFailed,
  headTooLarge,
  methodNotOffered,
  wrongFraming,
  wrongVersion,
} from '../connections/raw-refusal.ts';
import type { RawRefusal } from '../connections/raw-refusal.ts';

/** The methods of HTTP. Node's parser takes those of RTSP as well, over `RTSP/` alone, and does not say which protocol it was. */
const methods: ReadonlySet<string> = new Set(METHODS);

/** How many header fields a head may have. Node would drop those beyond 2000, which would hide them from this check. */
const maxHeaderFields = 256;

/**
 * The headers that a request may have once: of two values, a proxy in front may read another one than Node, which keeps the
 * first or joins them. Each has a length of its own, by which it is found, and a bit.
 */
const single = [
  'host',
  'transfer-encoding',
  'content-length',
  'expect',
  'upgrade',
  'authorization',
  'proxy-authorization',
  'content-type',
  'content-encoding',
  'idempotency-key',
].map((name, index) => ({ name, first: name.charCodeAt(0), bit: 1 << index }));

const maxNameLength = Math.max(...single.map(({ name }) => name.length));
const byLength = Array.from(
  { length: maxNameLength + 1 },
  (_, length) => single.find(({ name }) => name.length === length) ?? null,
);
const toLower = 0x20;

const hostBit = bitOf('host');
const transferEncodingBit = bitOf('transfer-encoding');
const contentLengthBit = bitOf('content-length');
const expectBit = bitOf('expect');
const upgradeBit = bitOf('upgrade');

const wrongTarget = badRequest(
  'target',
  "The request line must name a path, such as '/v1/models', or an http or https URL with a valid host, without a '#'.",
);
const wrongHost = badRequest(
  'host',
  "The 'Host' header is missing or wrong: send one host name or address, with a port or without, and nothing else.",
);
const wrongUpgrade = badRequest(
  'upgrade',
  "This service speaks HTTP/1.1 only: send the request without 'Upgrade'.",
);

const name = String.raw`[\w.~-]+|\[([\da-f:.]+)\]`;
const hostForm = new RegExp(`^(?:${name})(?::(\\d{0,5}))?$`, 'i');
const absoluteForm = /^https?:\/\/([^/?]*)(.*)/i;
const maxPort = 65_535;
const slash = 0x2f;

/**
 * Checks the head of a request on one of our own listeners, before any route: whatever two parsers could read in two ways,
 * and so might let a second request hide in the first. Returns the refusal, after which the connection must be closed;
 * `null` for a good head. The target of a good one is brought into the form that routes know, without scheme and host.
 */
export function checkHead(request: IncomingMessage): RawRefusal | null {
  const { rawHeaders, httpVersionMajor, httpVersionMinor } = request;
  if (httpVersionMajor !== 1 || !methods.has(request.method ?? '')) return wrongVersion;
  if (rawHeaders.length > 2 * maxHeaderFields) return headTooLarge;
  let seen = 0;
  let [host, transferEncoding, expect, upgrade] = ['', '', '', ''];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const field = rawHeaders[at] as string;
    const bit = bitOf(field);
    if (bit === 0) continue;
    if ((seen & bit) !== 0) return duplicated(field);
    seen |= bit;
    if (bit === hostBit) host = rawHeaders[at + 1] as string;
    else if (bit === transferEncodingBit) transferEncoding = rawHeaders[at + 1] as string;
    else if (bit === expectBit) expect = rawHeaders[at + 1] as string;
    else if (bit === upgradeBit) upgrade = rawHeaders[at + 1] as string;
  }
  // HTTP/1.0 has neither of these: there a Host may be missing, and an expectation and an upgrade are ignored.
  const isFull = httpVersionMinor === 1;
  if ((seen & hostBit) === 0 ? isFull : !isHost(host)) return wrongHost;
  if ((seen & transferEncodingBit) !== 0) {
    const isAlone = isFull && (seen & contentLengthBit) === 0;
    if (!isAlone || transferEncoding.toLowerCase() !== 'chunked') return wrongFraming;
  }
  if (isFull && (seen & expectBit) !== 0 && expect.toLowerCase() !== '100-continue') return expectationFailed;
  // The HTTP client of Java asks for h2c with every first request, and takes the answer that ignores it.
  if (isFull && (seen & upgradeBit) !== 0 && upgrade.toLowerCase() !== 'h2c') return wrongUpgrade;
  if (request.method === 'TRACE') return methodNotOffered;
  return checkTarget(request);
}

/** The bit of a header that may be sent once; 0 for others, of which few have both the length and the first letter of one. */
function bitOf(field: string): number {
  if (field.length > maxNameLength) return 0;
  const known = byLength[field.length];
  if (!known || (field.charCodeAt(0) | toLower) !== known.first) return 0;
  return field.toLowerCase() === known.name ? known.bit : 0;
}

/** The authority of an absolute target is checked and not used: no route depends on the host that a client names. */
function checkTarget(request: IncomingMessage): RawRefusal | null {
  const { url = '', method } = request;
  // A proxy in front may end the path there, and another one not: rules by path would see another one than we do.
  if (url.includes('#')) return wrongTarget;
  if (url.charCodeAt(0) === slash) return null;
  if (url === '*' && method === 'OPTIONS') return null;
  const [, authority, rest = ''] = absoluteForm.exec(url) ?? [];
  if (authority === undefined || !isHost(authority)) return wrongTarget;
  request.url = rest.startsWith('/') ? rest : `/${rest}`;
  return null;
}

/** Whether a text is a host with an optional port: a name, an IPv4 address or an IPv6 address in brackets. */
function isHost(text: string): boolean {
  const found = hostForm.exec(text);
  if (found === null) return false;
  const [, address, port = ''] = found;
  return Number(port) <= maxPort && (address === undefined || isIPv6(address));
}

function duplicated(field: string): RawRefusal {
  const message = `The header '${field.toLowerCase()}' was sent more than once. Send it once.`;
  return { reason: 'duplicate_header', status: 400, code: 'duplicate_header', message };
}
