import type { Worker } from 'node:worker_threads';
import type { Clock } from '../domain/ports/clock.ts';
import { startThread } from '../shared/thread-file.ts';
import { TextTurns } from './text-turns.ts';
import type { CountTime } from './text-turns.ts';
import type { CountReply, CountRequest } from './token-worker.ts';

/** The size of the texts that may wait for their count, in UTF-16 code units; further texts are refused. */
const maxWaitingChars = 33_554_432;

/** How long after a failure the thread is not started again, in milliseconds: each start takes a quarter of a second. */
const restartMs = 5_000;

/** How long the thread stays without a text to count, in milliseconds: its tables take some 70 MB. */
const idleMs = 600_000;

/** How long the thread may take for one piece, its start included, in milliseconds. */
const maxPieceMs = 10_000;

/** The memory that the thread's objects may take, in MiB: without a bound, it could take that of the whole process. */
const maxOldMiB = 256;
const maxYoungMiB = 8;

/** The part of a worker thread that is used here. */
type ThreadPort = Pick<Worker, 'postMessage' | 'on' | 'terminate'>;

/** Starts a thread. Tests pass their own, to end threads at a moment of their choice. */
type StartThread = () => ThreadPort;

/** Counts tokens in a thread of its own. */
export type ThreadedTokenCounter = ReturnType<typeof createTokenCounter>;

/** Counts tokens in a thread, which is started with the first text. Rejects for more than can wait, and after a failure. */
export function createTokenCounter(clock: Clock, start?: StartThread) {
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
    /** Whether a request waits for the count of its text. */
    get isCounting() {
      return thread !== null && thread.waitingChars > 0;
    },
    async countWhenIdle(text: string): Promise<number> {
      thread ??= begin();
      return thread.count(text, 'when_idle');
    },
    async count(text: string): Promise<number> {
      thread ??= begin();
      if (thread.waitingChars + text.length > maxWaitingChars)
        throw new Error('too much text waits for the count of its tokens');
      return thread.count(text, 'now');
    },
    /** Ends the thread: what waits is rejected, and so is every later text. */
    async close(): Promise<void> {
      isClosed = true;
      await thread?.close();
    },
  };
}

/** One life of the thread, from its start to its end. */
type CountingThread = ReturnType<typeof startCountingThread>;

/**
 * Starts the thread, which ends by itself when it was idle for ten minutes. `onEnd` is called at its end for any cause but
 * `close`, with whether it failed.
 */
function startCountingThread(
  clock: Clock,
  onEnd: (hasFailed: boolean) => void,
  start: StartThread = startWorker,
) {
  const texts = new TextTurns();
  let over: Error | null = null;
  let cancelLimit: (() => void) | null = null;

  const worker = start();
  const end = (reason: string): void => {
    if (over !== null) return;
    over = new Error(reason);
    cancelLimit?.();
    texts.rejectAll(over);
  };
  const endByItself = (reason: string, hasFailed: boolean): void => {
    if (over !== null) return;
    end(reason);
    void worker.terminate();
    onEnd(hasFailed);
  };
  const fail = (reason: string): void => endByItself(`the token thread ${reason}`, true);
  /** Sends the next piece; the limit is that of this piece, or of being idle. */
  const countNext = (): void => {
    cancelLimit?.();
    const piece = texts.next();
    if (piece === null) {
      cancelLimit = clock.schedule(idleMs, () => endByItself('the token thread was idle', false));
      return;
    }
    const request: CountRequest = { piece };
    worker.postMessage(request);
    cancelLimit = clock.schedule(maxPieceMs, () => fail(`did not answer within ${maxPieceMs} ms`));
  };
  worker.on('message', (reply: CountReply) => {
    if (over !== null) return;
    texts.take(reply);
    countNext();
  });
  worker.on('error', (error) => fail(`failed: ${String(error)}`));
  worker.on('exit', () => fail('ended'));

  return {
    /** The size of the texts that requests wait for, in UTF-16 code units. */
    get waitingChars() {
      return texts.chars;
    },
    /** Rejects when the tokens of this text can't be counted, and when the thread ends. */
    count(text: string, time: CountTime): Promise<number> {
      if (over !== null) return Promise.reject(over);
      const counted = texts.add(text, time);
      if (!texts.isCounting) countNext();
      return counted;
    },
    /** Ends the thread: what waits is rejected. */
    async close() {
      end('the gateway closes');
      await worker.terminate();
    },
  };
}

function startWorker(): ThreadPort {
  return startThread(import.meta.url, 'token-worker', {
    name: 'textgate-tokens',
    resourceLimits: { maxOldGenerationSizeMb: maxOldMiB, maxYoungGenerationSizeMb: maxYoungMiB },
  });
}
