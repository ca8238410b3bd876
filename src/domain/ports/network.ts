import type { UpstreamFault } from './upstreams.ts';

/** What TLS connections use in place of the system's authorities, and to identify this side of them; in PEM. */
export interface Certificates {
  /** The authorities that may have signed the other side's certificate; the system's own if there are none. */
  readonly ca?: string;
  /** This side's certificate, with those between it and its authority. */
  readonly cert?: string;
  /** The key of that certificate. */
  readonly key?: string;
}

/** What was agreed on a TLS connection. */
export interface TlsSession {
  /** The protocol's name, such as `TLSv1.3`. */
  readonly version: string;
  /** When the certificate expires, in milliseconds since 1970. */
  readonly expiresMs: number;
}

/** Opens connections to an upstream's origin without sending anything on them, and closes them. */
export interface Network {
  /** The addresses of the URL's host; a link-local one is a fault unless it is allowed. */
  resolve(url: URL): Promise<readonly string[] | UpstreamFault>;
  /** Opens a TCP connection; returns the address that accepted it. */
  connect(url: URL): Promise<string | UpstreamFault>;
  /** Opens a TLS connection and verifies the certificate. */
  secure(url: URL): Promise<TlsSession | UpstreamFault>;
}
