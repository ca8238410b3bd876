/** What TLS connections use in place of the system's authorities, and to identify this side of them; in PEM. */
export interface Certificates {
  /** The authorities that may have signed the other side's certificate; the system's own if there are none. */
  readonly ca?: string;
  /** This side's certificate, with those between it and its authority. */
  readonly cert?: string;
  /** The key of that certificate. */
  readonly key?: string;
}
