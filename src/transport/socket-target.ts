import type { buildConnector } from 'undici';

/** Opens sockets. */
export type Connector = ReturnType<typeof buildConnector>;

/** The address of a URL as a connector takes it. */
export function targetOf({ hostname, host, port }: URL, protocol: string): Parameters<Connector>[0] {
  return {
    hostname: bare(hostname),
    host,
    protocol,
    port: port === '' ? (defaultPorts[protocol] ?? '') : port,
  };
}

const defaultPorts: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };

/** A host as it is connected to: an IPv6 address without the brackets of a URL. */
export function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}
