/** Why a file can't be read, in words for the operator; `null` for an unusual code of a system call. */
export function describeReadFault(code: string | undefined): string | null {
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EISDIR') return 'this is a folder, and not a file';
  return code === 'EACCES' ? 'this user may not read the file' : null;
}
