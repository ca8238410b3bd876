import { once } from 'node:events';
import { existsSync, promises } from 'node:fs';
import { connect } from 'node:net';
import { dirname } from 'node:path';

/**
 * Removes the file of a unix socket whose process is dead; nothing could listen there otherwise. Throws with what to do
 * when a process listens there, when the file is no socket, or when its folder is missing.
 */
export async function removeStaleSocket(path: string): Promise<void> {
  // Why nothing can be there, such as missing rights, is the error of listening.
  const stats = await promises.lstat(path).catch(() => null);
  if (stats === null) {
    // Node reports it as missing rights.
    if (!existsSync(dirname(path)))
      throw new Error(`server.socket: there is no folder ${dirname(path)}: create it, or write another path`);
    return;
  }
  if (!stats.isSocket())
    throw new Error(`server.socket: ${path} exists, and is no socket: remove it, or write another path`);
  const code = await tryConnect(path);
  if (code === null)
    throw new Error(`server.socket: a process listens on ${path} already: stop it, or write another path`);
  if (code === 'EACCES')
    throw new Error(`server.socket: ${path} belongs to another user: remove it, or write another path`);
  if (code === 'ECONNREFUSED') await promises.rm(path, { force: true });
}

/** The code of the error of a connection; `null` if a process accepts it. */
async function tryConnect(path: string): Promise<string | null> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown';
  } finally {
    socket.destroy();
  }
}
