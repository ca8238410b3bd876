import { isLoopback } from '../../shared/ip-address.ts';
import type { UpstreamFault } from '../ports/upstreams.ts';
import type { Diagnosis, CallTarget, DiagnosedCall, SettingNames } from './call-target.ts';
import { explainProxyFault } from './proxy-explanations.ts';

const lookAtCompression = 'Check the compression of the server and of the proxies before it';

/** What is wrong with a body that is compressed, and what to do, by the code of the fault. */
const explanations = {
  CODING_UNKNOWN: {
    cause: 'the content-encoding of the answer is not known',
    advice: `${lookAtCompression}: up to three of gzip, deflate, br and zstd are decoded.`,
  },
  CODING_UNLABELLED: {
    cause: 'the answer is compressed, but has no content-encoding',
    advice: `${lookAtCompression}: one of them removes the header.`,
  },
  CODING_BROKEN: {
    cause: 'the compressed answer is damaged, or is not in the form that its content-encoding names',
    advice: `${lookAtCompression}.`,
  },
  CODING_CUT: {
    cause: 'the compressed answer ends before its compressed data do',
    advice: `${lookAtCompression}, and their timeouts.`,
  },
  CODING_TOO_LARGE: {
    cause: 'the compressed answer is over 4 MiB long and over a hundred times as long as what was sent',
    advice: `${lookAtCompression}: no model writes such an answer.`,
  },
} as const satisfies Readonly<Record<string, Diagnosis>>;

/** What can be wrong with the codings of a body. */
export type CodingFault = keyof typeof explanations;

/** Explains a fault of a body's codings; `null` for the code of any other fault. */
export function explainCoding(code: string): Diagnosis | null {
  return Object.hasOwn(explanations, code) ? explanations[code as CodingFault] : null;
}

/** The code of the fault of a host name that is resolved to a refused address. */
export const linkLocalRefused = 'LINK_LOCAL_REFUSED';

/** The code of the fault of an answer before which interim ones came without end. */
export const interimOverflow = 'INTERIM_OVERFLOW';

/** What an explanation may refer to. */
interface Facts {
  readonly names: SettingNames;
  /** The host of the URL, without port and brackets. */
  readonly host: string;
  readonly isTls: boolean;
}

/** The explanation of a fault, by the codes of the system, of TLS and of the HTTP client. */
interface CodeRow {
  readonly codes: RegExp;
  readonly cause: (facts: Facts) => string;
  readonly advice: (facts: Facts) => string;
}

const rows: readonly CodeRow[] = [
  {
    codes: /^ECONNREFUSED$/,
    cause: () => 'connection refused',
    advice: ({ names: { url }, host }) =>
      `Start the server, or correct the host and port of ${url}${containerHint(host)}.`,
  },
  {
    codes: /^ENOTFOUND$/,
    cause: ({ host }) => `the host name ${host} has no address`,
    advice: ({ names: { url } }) => `Correct the host of ${url}, or the DNS of this machine.`,
  },
  {
    codes: /^EAI_/,
    cause: ({ host }) => `the host name ${host} could not be resolved`,
    advice: () => 'Check that the DNS server of this machine can be reached.',
  },
  {
    codes: /^(EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN|EADDRNOTAVAIL)$/,
    cause: () => 'there is no network route to the host',
    advice: ({ names: { url } }) => `Check the network of this machine, and the host of ${url}.`,
  },
  {
    codes: /^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/,
    cause: () => 'the connection could not be opened in time',
    advice: ({ names: { url } }) => `Check the host and port of ${url}, and the firewalls on the way there.`,
  },
  {
    codes: /^(EACCES|EPERM)$/,
    cause: () => 'the system does not permit the connection',
    advice: () => 'Check the firewall and the sandbox of this machine.',
  },
  {
    codes: /^(EMFILE|ENFILE)$/,
    cause: () => 'no more files or sockets may be opened',
    advice: () => 'Raise the limit of open files (ulimit -n).',
  },
  {
    codes: new RegExp(`^${linkLocalRefused}$`),
    cause: ({ host }) => `${host} is resolved to a link-local address, which is refused`,
    advice: ({ names: { url, allowLinkLocal } }) =>
      `Correct the host of ${url}, or set ${allowLinkLocal}: true.`,
  },
  {
    codes: /^(ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|UNKNOWN_PROTOCOL|HTTP_REQUEST)|EPROTO)$/,
    cause: () => 'the server does not use TLS on this port',
    advice: ({ names: { url } }) => `Write http:// instead of https:// in ${url}, or correct its port.`,
  },
  {
    codes: /^(UND_ERR_HEADERS_OVERFLOW|HPE_HEADER_OVERFLOW)$/,
    cause: () => 'the headers of the answer are larger than 16 KiB',
    advice: () => 'Check which headers the server and the proxies before it add, such as cookies.',
  },
  {
    codes: new RegExp(`^${interimOverflow}$`),
    cause: () => 'interim answers (status 1xx) came without end before the answer',
    advice: () => 'Check the server, and the proxies before it.',
  },
  {
    codes: /^(HPE_|HTTPParserError$)/,
    cause: () => 'the answer is not HTTP',
    advice: ({ names: { url }, isTls }) =>
      isTls
        ? `Correct the port of ${url}.`
        : `Write https:// instead of http:// in ${url}, or correct its port.`,
  },
  {
    codes: /^CERT_HAS_EXPIRED$/,
    cause: () => "the server's certificate has expired",
    advice: () => 'Renew the certificate, and check the clock of this machine.',
  },
  {
    codes: /^CERT_NOT_YET_VALID$/,
    cause: () => "the server's certificate is not valid yet",
    advice: () => 'Check the clocks of this machine and of the one that made the certificate.',
  },
  {
    codes: /^DEPTH_ZERO_SELF_SIGNED_CERT$/,
    cause: () => "the server's certificate is self-signed",
    advice: ({ names: { url, ca } }) => `Set ${ca} to a file with this certificate, or correct ${url}.`,
  },
  {
    codes: /^(SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_)/,
    cause: () => "the server's certificate is signed by an unknown authority",
    advice: ({ names: { url, ca } }) =>
      `Set ${ca} to a file with the certificate of that authority, or correct ${url}.`,
  },
  {
    codes: /_ALERT_(CERTIFICATE_|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE)/,
    cause: () => 'the server asks for a client certificate, or refused that of this gateway',
    advice: ({ names: { clientCertificate } }) =>
      `Set ${clientCertificate} to files that the server accepts.`,
  },
  {
    codes: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    cause: ({ host }) => `the server's certificate is not for ${host}`,
    advice: ({ names: { url } }) => `Use a host name of the certificate in ${url}.`,
  },
  {
    codes: /^(CERT_|ERR_TLS_|ERR_SSL_)/,
    cause: () => 'the TLS connection failed',
    advice: ({ names: { url } }) => `Check the certificate of the server, and ${url}.`,
  },
  {
    codes: /^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/,
    cause: () => 'the server closed the connection without an answer',
    advice: ({ names: { url, clientCertificate }, isTls }) =>
      isTls
        ? `Check the log of the server, the port of ${url}, and whether it asks for a client certificate (${clientCertificate}).`
        : `Check the log of the server; if it expects TLS, write https:// in ${url}.`,
  },
];

/** Explains a call that got no answer, or only a part of one: the cause without its call, and the advice. */
export function explainFault(
  { fault, code, cause }: UpstreamFault,
  { target, limitMs }: DiagnosedCall,
): Diagnosis {
  const { names } = target;
  switch (fault) {
    case 'interrupted':
    case 'first_byte_timeout':
    case 'total_timeout':
      return {
        cause: limitMs === undefined ? 'no answer in time' : `no answer within ${limitMs / 1_000} s`,
        advice: `Check the load of the server, the host and port of ${names.url}, and the firewalls on the way there.`,
      };
    case 'first_text_timeout':
      return {
        cause: 'no text in time',
        advice: 'Check the load of the server, or allow more time in timeouts.firstText of its upstream.',
      };
    case 'idle_timeout':
      return {
        cause: 'the answer stopped in the middle',
        advice: 'Check the load and the log of the server.',
      };
    case 'unread':
      return { cause: 'the client did not read the answer in time', advice: 'The upstream is not at fault.' };
    case 'broken':
      return {
        cause: 'the connection broke in the middle of the answer',
        advice: 'Check the log of the server, and the proxies on the way there.',
      };
    case 'stale':
    case 'unreachable':
    case 'unanswered':
    case 'oversized_head':
    case 'undecodable':
    case 'cut_coding':
      return explainCode(code ?? '', cause, target);
  }
}

function explainCode(code: string, details: string | undefined, target: CallTarget): Diagnosis {
  const ofCoding = explainCoding(code);
  if (ofCoding !== null) return ofCoding;
  const { base, names } = target;
  const ofProxy = explainProxyFault(
    code,
    target,
    (inner, host, isTls) => rowOf(inner)?.cause({ names, host, isTls }) ?? inner,
  );
  if (ofProxy !== null) return ofProxy;
  const { hostname, protocol } = new URL(base);
  const facts = { names, host: hostname.replace(/^\[|\]$/g, ''), isTls: protocol === 'https:' };
  const row = rowOf(code);
  if (row !== undefined) return { cause: row.cause(facts), advice: row.advice(facts) };
  return {
    cause: `the connection failed${details === undefined ? '' : ` (${details})`}`,
    advice: `Check ${names.url}, and the network on the way there.`,
  };
}

function rowOf(code: string): CodeRow | undefined {
  return rows.find(({ codes }) => codes.test(code));
}

/** The most likely mistake about a loopback address that works outside of containers. */
function containerHint(host: string): string {
  return host === 'localhost' || isLoopback(host) ? ` (in a container, ${host} is the container itself)` : '';
}
