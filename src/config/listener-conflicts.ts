import type { Problem } from './problem.ts';
import { defaultAdminPort, defaultHost, defaultPort } from './default-addresses.ts';

/** Hosts that stand for every network of the machine. */
const wildcards = new Set<unknown>(['0.0.0.0', '::']);

/** Hosts that usually stand for the same machine alone. */
const loopbacks = new Set<unknown>(['127.0.0.1', 'localhost', '::1']);

/**
 * The problem of two listeners with one port, on hosts where only one of them can have it. It is found at the port of
 * the listener that is `blamed`. Reads the unchecked config, so that it is reported with all others.
 */
export function listenerConflicts(input: unknown, blamed: 'server' | 'admin' = 'admin'): readonly Problem[] {
  if (sectionIn(input, 'server')['socket'] !== undefined) return socketConflicts(input);
  const server = addressIn(input, 'server', defaultPort);
  const admin = addressIn(input, 'admin', defaultAdminPort);
  if (server.port !== admin.port || server.port === 0 || !overlap(server.host, admin.host)) return [];
  const [other, usual] =
    blamed === 'admin' ? ['clients', defaultAdminPort] : (['operators', defaultPort] as const);
  const free = server.port === usual ? usual + 1 : usual;
  return [
    {
      path: [blamed, 'port'],
      message: `the same port as that of the listener for ${other}: write another one, such as ${free}`,
    },
  ];
}

/** The problems of an address beside a unix socket, which takes its place. */
function socketConflicts(input: unknown): readonly Problem[] {
  const section = sectionIn(input, 'server');
  return ['host', 'port']
    .filter((name) => section[name] !== undefined)
    .map((name) => ({
      path: ['server', name],
      message: 'server.socket takes the place of host and port: leave out either',
    }));
}

function overlap(one: unknown, other: unknown): boolean {
  const either = [one, other];
  return (
    one === other ||
    either.some((host) => wildcards.has(host)) ||
    (either.includes('localhost') && either.every((host) => loopbacks.has(host)))
  );
}

/** The address of a listener in an unchecked config. A port in digits counts as a number, as it does in the schema. */
function addressIn(
  input: unknown,
  section: 'server' | 'admin',
  usualPort: number,
): { readonly host: unknown; readonly port: unknown } {
  const { host = defaultHost, port = usualPort } = sectionIn(input, section);
  return { host, port: typeof port === 'string' && /^\d+$/.test(port) ? Number(port) : port };
}

function sectionIn(input: unknown, section: 'server' | 'admin'): Readonly<Record<string, unknown>> {
  const sections = (input ?? {}) as Readonly<Record<string, unknown>>;
  return (sections[section] ?? {}) as Readonly<Record<string, unknown>>;
}
