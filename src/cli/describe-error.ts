/** What the codes of failed system calls mean; others are printed as they are. */
const meanings: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  ENOENT: 'no such file or folder',
  EEXIST: 'there is a file or folder of this name',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is not a folder',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EMFILE: 'too many open files (ulimit -n)',
};

/** An error of a system call, as Node throws it. */
export interface SystemError extends Error {
  readonly code: string;
  readonly syscall: string;
  readonly path?: string;
  readonly address?: string;
  readonly port?: number;
  readonly hostname?: string;
}

export function isSystemError(error: unknown): error is SystemError {
  const { code, syscall } = (error ?? {}) as Partial<SystemError>;
  return error instanceof Error && typeof code === 'string' && typeof syscall === 'string';
}

/** The message of an error for the person who runs the command. A failed access to a file becomes a sentence. */
export function describeError(error: unknown): string {
  if (!isSystemError(error)) return error instanceof Error ? error.message : String(error);
  const { path, address, syscall, code, message } = error;
  if (path !== undefined) return `${path}: ${meanings[code] ?? code} (${syscall})`;
  // That of a socket has its place in its message.
  return meanings[code] === undefined || address !== undefined ? message : `${meanings[code]} (${syscall})`;
}
