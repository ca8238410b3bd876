import type { Clock } from '../domain/ports/clock.ts';
import type { IdleTokenCounter, TokenCounter } from '../domain/ports/tokens.ts';
import { startCountingThread } from './counting-thread.ts';
import type { CountingThread, StartThread } from './counting-thread.ts';

/** The size of the texts that may wait for their count, in UTF-16 code units; further texts are refused. */
const maxWaitingChars = 33_554_432;

/** How long after a failure the thread is not started again, in milliseconds: each start takes a quarter of a second. */
const restartMs = 5_000;

/** Counts tokens in a thread of its own. */
export interface ThreadedTokenCounter extends TokenCounter, IdleTokenCounter {
  /** Whether a request waits for the count of its text. */
  readonly isCounting: boolean;
  /** Ends the thread: what waits is rejected, and so is every later text. */
  close(): Promise<void>;
}

/** Counts tokens in a thread, which is started with the first text. Rejects for more than can wait, and after a failure. */
export function createTokenCounter(clock: Clock, start?: StartThread): ThreadedTokenCounter {
  let thread: CountingThread | null = null;
  let restartAtMs = Number.NEGATIVE_INFINITY;
  let isClosed = false;

  const begin = (): CountingThread => {
    if (isClosed) throw new Error('the gateway is closed');
    if (clock.monotonicMs() < restartAtMs) throw new Error('the token thread has failed just now');
    const onEnd = (hasFailed: boolean): void => {
      thread = null;
      if (hasFailed) restartAtMs = clock.monotonicMs() + restartMs;
    };
    return startCountingThread(clock, onEnd, start);
  };
  return {
    get isCounting() {
      return thread !== null && thread.waitingChars > 0;
    },
    async countWhenIdle(text) {
      thread ??= begin();
      return thread.count(text, 'when_idle');
    },
    async count(text) {
      thread ??= begin();
      if (thread.waitingChars + text.length > maxWaitingChars)
        throw new Error('too much text waits for the count of its tokens');
      return thread.count(text, 'now');
    },
    async close() {
      isClosed = true;
      await thread?.close();
    },
  };
}
