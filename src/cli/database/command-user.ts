import { userInfo } from 'node:os';
import type { Actor } from '../../domain/audit/audit-line.ts';

/** The user who runs a command, for the audit. */
export function commandUser(): Actor {
  return { way: 'cli', name: userName(), address: null };
}

function userName(): string | null {
  try {
    return userInfo().username;
  } catch {
    // A user without an entry, as in a container that runs under a number alone.
    return null;
  }
}
