import type { Config } from '../../config/schema/schema.ts';
import { adminTokenName } from '../../config/admin-token.ts';
import { readVariable } from '../../config/environment.ts';
import type { Environment } from '../../config/environment.ts';
import { isCheckout } from '../../shared/version.ts';
import { describeError, isSystemError } from '../describe-error.ts';
import type { SystemError } from '../describe-error.ts';
import type { ServeOptions } from './serve-config.ts';

/** How much higher the port is that is suggested instead of one in use. */
const portStep = 10;
const maxPort = 65_535;

/** What was tried. */
interface Attempted {
  readonly config: Pick<Config, 'server' | 'admin'>;
  /** The command that tries it again with other ports, to be pasted into a shell. */
  readonly commandWith: (ports: Pick<ServeOptions, 'port' | 'adminPort'>) => string;
}

/** A listener, as the config and the options name it. */
interface Listener {
  readonly section: 'server' | 'admin';
  readonly option: 'port' | 'adminPort';
  readonly host: string;
  readonly port: number;
}

/** Why a gateway could not start, and what to do, for the person who started it. */
export function describeStartError(error: unknown, attempted: Attempted): string {
  if (!isSystemError(error)) return describeError(error);
  // What it says is complete: there is no port that could be another one.
  if (error.message.startsWith('server.socket: ')) return error.message;
  const listener = listenerOf(error, attempted.config);
  switch (error.code) {
    case 'EADDRINUSE':
      return `port ${listener.port} is in use. Start it on another one:\n  ${withOtherPort(listener, attempted)}`;
    case 'EADDRNOTAVAIL':
      return `${listener.section}.host: this machine has no address ${listener.host}. Use one of its own, or 0.0.0.0 for all of them`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `${listener.section}.host: no address is known for ${listener.host}. Write an IP address, such as 127.0.0.1`;
    case 'EACCES':
    case 'EPERM':
      // A worker has its ports opened by the primary process, which calls it by another name.
      if (error.syscall !== 'listen' && error.syscall !== 'bind') break;
      return `port ${listener.port} needs privileges that this user lacks. Start it on another one:\n  ${withOtherPort(listener, attempted)}`;
    default:
  }
  return describeError(error) + adviceFor(error.path ?? '');
}

/** What to do where a file could not be made. */
function adviceFor(path: string): string {
  if (path.startsWith('data')) return '. Run textgate in a folder where it can write';
  return path.includes(adminTokenName)
    ? '. Make its folder writable, or set admin.tokenFolder to one that is, or TEXTGATE_ADMIN_TOKEN'
    : '';
}

/** The listener that could not be opened. */
function listenerOf({ port, hostname }: SystemError, { server, admin }: Attempted['config']): Listener {
  const isAdmin =
    hostname === undefined ? port === admin.port && port !== server.port : hostname !== server.host;
  return isAdmin
    ? { section: 'admin', option: 'adminPort', host: admin.host, port: admin.port }
    : { section: 'server', option: 'port', host: server.host, port: server.port };
}

/** The command with a port that ordinary users can open. */
function withOtherPort({ option, port }: Listener, { commandWith }: Attempted): string {
  const isPrivileged = port < 1_024;
  const other = port + portStep > maxPort ? port - portStep : port + portStep;
  return commandWith({ [option]: isPrivileged ? 8_000 + port : other });
}

/** How the gateway is started. */
const start = isCheckout ? 'npm start --' : 'textgate serve';

/** Texts that a shell takes as they are, and URLs in which no secret can be. */
const plainText = /^[\w@%+=:,./-]+$/;
const plainUrl = /^[\w:./[\]-]+$/;

/** The command that starts the same gateway again, to be pasted into a shell with further options. */
export function serveCommand(options: ServeOptions, environment: Environment): string {
  const { config, upstreamKeyEnv, host, port, adminHost, adminPort } = options;
  const upstream = options.upstream ?? readVariable(environment, 'TEXTGATE_UPSTREAM_URL');
  const given: readonly (readonly [string, string | number | undefined])[] = [
    ['--config', config],
    // A variable may be set for one command only, and would be missing from the next one.
    ['--upstream', config === undefined && plainUrl.test(upstream ?? '') ? upstream : undefined],
    ['--upstream-key-env', upstreamKeyEnv],
    ['--host', host],
    ['--port', port],
    ['--admin-host', adminHost],
    ['--admin-port', adminPort],
  ];
  const words = given.flatMap(([name, value]) => (value === undefined ? [] : [name, quote(String(value))]));
  return [start, ...words].join(' ');
}

function quote(text: string): string {
  return plainText.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
