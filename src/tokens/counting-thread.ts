import type { Worker } from 'node:worker_threads';
import type { Clock } from '../domain/ports/clock.ts';
import { startThread } from '../shared/thread-file.ts';
import type { CountReply, CountRequest } from './thread-messages.ts';

/** How long the thread stays without a text to count, in milliseconds: its tables take some 70 MB. */
const idleMs = 600_000;

/** How long the thread may take for one text, its start included, in milliseconds. */
const maxCountMs = 10_000;

/** The memory that the thread's objects may take, in MiB: without a bound, it could take that of the whole process. */
const maxOldMiB = 256;
const maxYoungMiB = 8;

/** The part of a worker thread that is used here. */
type ThreadPort = Pick<Worker, 'postMessage' | 'on' | 'terminate' | 'ref' | 'unref'>;

/** Starts a thread. Tests pass their own, to end threads at a moment of their choice. */
export type StartThread = () => ThreadPort;

/** One life of the thread that counts tokens, from its start to its end. */
export interface CountingThread {
  /** The size of the texts that wait, in UTF-16 code units. */
  readonly waitingChars: number;
  /** Rejects when the tokens of this text can't be counted, and when the thread ends. */
  count(text: string): Promise<number>;
  /** Ends the thread: what waits is rejected. */
  close(): Promise<void>;
}

interface Waiting {
  readonly chars: number;
  readonly resolve: (tokens: number) => void;
  readonly reject: (error: Error) => void;
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
  const waiting = new Map<number, Waiting>();
  let waitingChars = 0;
  let lastId = 0;
  let over: Error | null = null;
  let cancelLimit: (() => void) | null = null;

  const worker = start();
  const end = (reason: string): void => {
    if (over !== null) return;
    over = new Error(reason);
    cancelLimit?.();
    for (const { reject } of waiting.values()) reject(over);
    waiting.clear();
    waitingChars = 0;
  };
  const endByItself = (reason: string, hasFailed: boolean): void => {
    if (over !== null) return;
    end(reason);
    void worker.terminate();
    onEnd(hasFailed);
  };
  const fail = (reason: string): void => endByItself(`the token thread ${reason}`, true);
  /** Starts the limit anew: of one text while texts wait, or of being idle, when nothing of it keeps the process alive. */
  const limit = (): void => {
    cancelLimit?.();
    const isIdle = waiting.size === 0;
    if (isIdle) worker.unref();
    else worker.ref();
    cancelLimit = isIdle
      ? clock.schedule(idleMs, () => endByItself('the token thread was idle', false))
      : clock.schedule(maxCountMs, () => fail(`did not answer within ${maxCountMs} ms`));
  };
  worker.on('message', (reply: CountReply) => {
    const asked = waiting.get(reply.id);
    if (asked === undefined) return;
    waiting.delete(reply.id);
    waitingChars -= asked.chars;
    limit();
    if (reply.kind === 'counted') asked.resolve(reply.tokens);
    else asked.reject(new Error(reply.reason));
  });
  worker.on('error', (error) => fail(`failed: ${String(error)}`));
  worker.on('exit', () => fail('ended'));

  return {
    get waitingChars() {
      return waitingChars;
    },
    count(text) {
      if (over !== null) return Promise.reject(over);
      const request: CountRequest = { id: ++lastId, text };
      const counted = new Promise<number>((resolve, reject) => {
        waiting.set(request.id, { chars: text.length, resolve, reject });
      });
      waitingChars += text.length;
      worker.postMessage(request);
      if (waiting.size === 1) limit();
      return counted;
    },
    async close() {
      end('the gateway closes');
      await worker.terminate();
    },
  };
}

function startWorker(): ThreadPort {
  return startThread(import.meta.url, {
    name: 'textgate-tokens',
    resourceLimits: { maxOldGenerationSizeMb: maxOldMiB, maxYoungGenerationSizeMb: maxYoungMiB },
  });
}
