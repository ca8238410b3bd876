/** The message of an error for the person who starts the process. */
export function describeError(error: unknown): string {
  const { code, port, message } = error as NodeJS.ErrnoException & { port?: number };
  if (code === 'EADDRINUSE')
    return `port ${port} is in use. Set TEXTGATE_PORT or TEXTGATE_ADMIN_PORT, or server.port or admin.port, to another one.`;
  return error instanceof Error ? message : String(error);
}
