/** An error in words for the person who starts the process. */
export function whatFailed(error: unknown): string {
  const { code, port, message } = error as NodeJS.ErrnoException & { port?: number };
  if (code === 'EADDRINUSE')
    return `port ${port} is taken. TEXTGATE_PORT and TEXTGATE_ADMIN_PORT, or server.port and admin.port, name others.`;
  return error instanceof Error ? message : String(error);
}
