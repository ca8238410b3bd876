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
export function explainListenError(error: unknown, listener: Listener): unknown {
  if (!(error instanceof Error)) return error;
  const { code = '' } = error as NodeJS.ErrnoException;
  const { socket } = listener;
  const message = socket === undefined ? meanings[code]?.(listener) : socketMeanings[code]?.(socket);
  return message === undefined ? error : Object.assign(new Error(message, { cause: error }), error);
}
