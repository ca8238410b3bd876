import type { Config } from '../../config/schema/schema.ts';
import { removeStaleSocket } from '../../http/listen/socket-file.ts';
import { startListening, startListeningAt } from '../../http/server.ts';
import type { HttpServer } from '../../http/server.ts';

/**
 * Opens both listeners, or neither; resolves with their addresses. `isAlone`: this process shares them with no worker; for
 * workers, the primary process has removed the socket of a dead one, and listens there itself.
 */
export async function openListeners(
  publicServer: HttpServer,
  adminServer: HttpServer,
  { server, admin: { host, port } }: Pick<Config, 'server' | 'admin'>,
  isAlone: boolean,
): Promise<{ readonly url: string; readonly adminUrl: string }> {
  const url = await openPublic(publicServer, server, isAlone);
  try {
    return { url, adminUrl: urlOf('http', host, await startListening(adminServer, host, port)) };
  } catch (error) {
    publicServer.close();
    throw explainListenError(error, { section: 'admin', host, port });
  }
}

async function openPublic(server: HttpServer, settings: Config['server'], isAlone: boolean): Promise<string> {
  const { host, port, socket, socketMode } = settings;
  try {
    if (socket === undefined) return publicUrl(settings, await startListening(server, host, port));
    if (isAlone) await removeStaleSocket(socket);
    await startListeningAt(server, socket, Number.parseInt(socketMode, 8));
    return publicUrl(settings, port);
  } catch (error) {
    throw explainListenError(error, { section: 'server', ...settings });
  }
}

/**
 * The address of the listener for clients, with its base path. One at a unix socket is written as nginx has it:
 * `http://unix:/run/textgate.sock:/llm`.
 */
function publicUrl({ host, socket, tls, basePath = '' }: Config['server'], port: number): string {
  const scheme = tls === undefined ? 'http' : 'https';
  const origin = socket === undefined ? urlOf(scheme, host, port) : `${scheme}://unix:${socket}:`;
  return origin + basePath;
}

/** The address of a listener at a port. */
function urlOf(scheme: 'http' | 'https', host: string, port: number): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Where a listener was to be opened. */
interface Listener {
  readonly section: 'server' | 'admin';
  readonly host: string;
  readonly port: number;
  /** The path of a unix socket, which takes the place of host and port. */
  readonly socket?: string | undefined;
}

/** What the codes of a failed `listen` mean, by the setting that is to be changed. */
const meanings: Readonly<Record<string, (listener: Listener) => string>> = {
  EADDRINUSE: ({ section, host, port }) => `${section}.port: port ${port} of ${host} is in use`,
  EACCES: ({ section, port }) => `${section}.port: port ${port} needs privileges that this user lacks`,
  EADDRNOTAVAIL: ({ section, host }) => `${section}.host: this machine has no address ${host}`,
  ENOTFOUND: ({ section, host }) => `${section}.host: no address is known for ${host}`,
  EAI_AGAIN: ({ section, host }) => `${section}.host: no address is known for ${host}`,
};

/** The same for a unix socket. */
const socketMeanings: Readonly<Record<string, (path: string) => string>> = {
  EADDRINUSE: (path) => `server.socket: another process listens on ${path}`,
  EACCES: (path) => `server.socket: this user may not create ${path}`,
  ENOENT: (path) => `server.socket: there is no folder for ${path}`,
};

/** Gives the error of a listener that could not be opened a message that names its setting; its other fields stay. */
function explainListenError(error: unknown, listener: Listener): unknown {
  if (!(error instanceof Error)) return error;
  const { code = '' } = error as NodeJS.ErrnoException;
  const { socket } = listener;
  const message = socket === undefined ? meanings[code]?.(listener) : socketMeanings[code]?.(socket);
  return message === undefined ? error : Object.assign(new Error(message, { cause: error }), error);
}
