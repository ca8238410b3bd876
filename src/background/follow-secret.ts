import type { Clock } from '../domain/ports/clock.ts';
import { repeat } from './repeat.ts';

/** How often a secret is read again, in milliseconds. Reading finds every kind of replacement, also that of a symlink. */
const readAgainMs = 2_000;

/** The pause after a failure before a secret that is seldom read is read again, in milliseconds. */
const retryMs = 15_000;

/** The shortest time between two reads that others ask for, in milliseconds. */
const soonMs = 10_000;

/** A secret that is replaced from time to time by another program. */
export interface FollowedSecret<Secret> {
  /** The secret as it was last read. */
  readonly current: Secret;
  /** Reads it again now, because it was refused; at most every ten seconds. */
  refused(): void;
  stop(): void;
}

/** Where a secret is read again, and the reports of failures. */
interface SecretSource<Secret> {
  /** Rejects with the reason when there is no secret now. */
  readonly read: (stopping: AbortSignal) => Promise<Secret>;
  readonly clock: Clock;
  /** How long a secret that was read is used before it is read again, in milliseconds; default: 2 s. */
  readonly everyMs?: number;
  /** Called once for all failures in a row: the secret that was last read stays in use. */
  readonly onFault: (error: unknown) => void;
  /** Called with the first success after a failure. */
  readonly onRecovery: () => void;
}

/** Follows a secret, beginning with its first value. */
export function followSecret<Secret>(
  first: Secret,
  { read, clock, everyMs = readAgainMs, onFault, onRecovery }: SecretSource<Secret>,
): FollowedSecret<Secret> {
  let current = first;
  let isFailing = false;
  let readAtMs = clock.monotonicMs();
  let reading: Promise<void> | null = null;
  const stopped = new AbortController();
  const readAgain = async (): Promise<void> => {
    readAtMs = clock.monotonicMs();
    try {
      current = await read(stopped.signal);
      if (isFailing) onRecovery();
      isFailing = false;
    } catch (error) {
      if (!isFailing && !stopped.signal.aborted) onFault(error);
      isFailing = true;
    }
  };
  const readOnce = (): Promise<void> => (reading ??= readAgain().finally(() => (reading = null)));
  const lookMs = Math.min(everyMs, retryMs);
  const readIfDue = async (): Promise<void> => {
    // Not later than due: it may end then.
    if (isFailing || clock.monotonicMs() + lookMs > readAtMs + everyMs) await readOnce();
  };
  repeat(readIfDue, { firstMs: lookMs, delayMs: lookMs }, clock, stopped.signal);
  return {
    get current() {
      return current;
    },
    refused() {
      if (!stopped.signal.aborted && clock.monotonicMs() >= readAtMs + soonMs) void readOnce();
    },
    stop: () => stopped.abort(),
  };
}
