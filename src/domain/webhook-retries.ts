/** The wait after the first failed attempt, and the longest one, in milliseconds; each is twice the one before. */
const firstRetryMs = 5_000;
const longestRetryMs = 3_600_000;

/** How far a wait is drawn from its length, up or down: receivers that return must not get everything at one moment. */
const jitter = 0.2;

/** How long a delivery is attempted, in milliseconds; then it is given up. */
export const givenUpMs = 259_200_000;

/** How long ended deliveries are kept, in milliseconds. */
export const keptMs = 604_800_000;

/** The wait behind some failed attempts, without jitter. */
function plainDelayMs(failures: number): number {
  return Math.min(firstRetryMs * 2 ** Math.min(failures - 1, 20), longestRetryMs);
}

/**
 * The wait before the next attempt, in milliseconds; `random` is from 0 to 1. A receiver that asked for a longer pause gets
 * that.
 */
export function retryDelayMs(failures: number, retryAfterMs: number | null, random: number): number {
  return Math.max(plainDelayMs(failures) * (1 + jitter * (2 * random - 1)), retryAfterMs ?? 0);
}

/** How many attempts are made within that time. They are counted, because a clock that is set must give up nothing. */
export const maxAttempts = countAttempts();

function countAttempts(): number {
  let attempts = 1;
  for (let elapsedMs = 0; elapsedMs < givenUpMs; attempts++) elapsedMs += plainDelayMs(attempts);
  return attempts;
}
