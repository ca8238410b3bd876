import type { Clock } from '../domain/ports/clock.ts';
import { repeat } from './repeat.ts';

/** How often a secret is read again, in milliseconds. Reading finds every kind of replacement, also that of a symlink. */
const readAgainMs = 2_000;

/** A secret that is replaced from time to time by another program. */
export interface FollowedSecret<Secret> {
  /** The secret as it was last read. */
  readonly current: Secret;
  stop(): void;
}

/** Where a secret is read again, and the reports of failures. */
interface SecretSource<Secret> {
  /** Rejects with the reason when there is no secret now. */
  readonly read: () => Promise<Secret>;
  readonly clock: Clock;
  /** Called once for all failures in a row: the secret that was last read stays in use. */
  readonly onFault: (error: unknown) => void;
  /** Called with the first success after a failure. */
  readonly onRecovery: () => void;
}

/** Follows a secret, beginning with its first value. */
export function followSecret<Secret>(
  first: Secret,
  { read, clock, onFault, onRecovery }: SecretSource<Secret>,
): FollowedSecret<Secret> {
  let current = first;
  let isFailing = false;
  const readAgain = async (): Promise<void> => {
    try {
      current = await read();
      if (isFailing) onRecovery();
      isFailing = false;
    } catch (error) {
      if (!isFailing) onFault(error);
      isFailing = true;
    }
  };
  const stopped = new AbortController();
  repeat(readAgain, { firstMs: readAgainMs, delayMs: readAgainMs }, clock, stopped.signal);
  return {
    get current() {
      return current;
    },
    stop: () => stopped.abort(),
  };
}
