import type { Config } from '../../config/schema/schema.ts';
import { removeStaleSocket } from '../../http/listen/socket-file.ts';
import { startListening, startListeningAt } from '../../http/server.ts';
import type { HttpServer } from '../../http/server.ts';
import { explainListenError } from './listen-error.ts';

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
