import type { Worker } from 'node:worker_threads';
import type { Clock } from '../domain/ports/clock.ts';
import { startThread } from '../shared/thread-file.ts';
import { TextTurns } from './text-turns.ts';
import type { CountTime } from './text-turns.ts';
import type { CountReply, CountRequest } from './thread-messages.ts';

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
export type StartThread = () => ThreadPort;

/** One life of the thread that counts tokens, from its start to its end. */
export interface CountingThread {
  /** The size of the texts that requests wait for, in UTF-16 code units. */
  readonly waitingChars: number;
  /** Rejects when the tokens of this text can't be counted, and when the thread ends. */
  count(text: string, time: CountTime): Promise<number>;
  /** Ends the thread: what waits is rejected. */
  close(): Promise<void>;
}

/**
 * Starts the thread, which ends by itself when it was idle for ten minutes. `onEnd` is called at its end for any cause but
 * `close`, with whether it failed.
 */
export function startCountingThread(
  clock: Clock,
  onEnd: (hasFailed: boolean) => void,
  start: StartThread = startWorker,
): CountingThread {
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
    get waitingChars() {
      return texts.chars;
    },
    count(text, time) {
      if (over !== null) return Promise.reject(over);
      const counted = texts.add(text, time);
      if (!texts.isCounting) countNext();
      return counted;
    },
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
