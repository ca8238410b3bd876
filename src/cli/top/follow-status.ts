import { promisify } from 'node:util';
import type { PresentedStatus } from '../../http/present/status.ts';
import { SseParser } from '../../protocol/sse.ts';
import { openAdmin } from '../admin-client.ts';
import { describeError } from '../describe-error.ts';
import { readRows } from './print-status.ts';

/** How long nothing may come before the connection counts as lost, in milliseconds: something comes every second. */
const silenceMs = 5_000;

/** The pauses before further attempts, in milliseconds: the first one, and the longest. */
const firstPauseMs = 500;
const longestPauseMs = 5_000;

/** Waits for so many milliseconds, or until a signal is raised. */
const pause = promisify(setTimeout);

const noStatus =
  'the stream ended before a status came: the gateway is closing, or TEXTGATE_ADMIN_URL is the address of another server';

/** What is done with what comes. */
interface StatusListener {
  readonly onStatus: (status: PresentedStatus) => void;
  /** The connection is lost, for a reason; it is tried again. */
  readonly onLost: (reason: string) => void;
}

/** Follows the status until `signal` is raised. Rejects only if the first attempt brings none: its reason is for the user. */
export async function followStatus({ onStatus, onLost }: StatusListener, signal: AbortSignal): Promise<void> {
  let pauseMs: number | null = null;
  const worked = (status: PresentedStatus): void => {
    pauseMs = firstPauseMs;
    onStatus(status);
  };
  while (!signal.aborted) {
    const reason = await readStream(worked, signal).catch((error: unknown) => {
      if (pauseMs === null && !signal.aborted) throw error;
      return describeError(error);
    });
    if (isAborted(signal)) return;
    // A server that never sends a status would be asked for ever, while nothing is shown.
    if (pauseMs === null) throw new Error(noStatus);
    onLost(reason);
    await pause(pauseMs, null, { signal }).catch(() => {});
    pauseMs = Math.min(longestPauseMs, 2 * pauseMs);
  }
}

/** A flag that changes during a wait, which the compiler does not know of. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

/** Reads one stream to its end; resolves with why it has ended. */
async function readStream(onStatus: (status: PresentedStatus) => void, signal: AbortSignal): Promise<string> {
  const silent = new AbortController();
  let timer = setTimeout(() => silent.abort(), silenceMs);
  try {
    const answer = await openAdmin(`/admin/status?limit=${readRows}`, {
      accept: 'text/event-stream',
      signal: AbortSignal.any([signal, silent.signal]),
    });
    const parser = new SseParser();
    answer.setEncoding('utf8');
    for await (const text of answer) {
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), silenceMs);
      for (const { name, data } of parser.push(String(text)))
        if (name === 'status') onStatus(JSON.parse(data) as PresentedStatus);
    }
    return 'the gateway has ended the stream';
  } catch (error) {
    throw silent.signal.aborted
      ? new Error(`nothing came for ${silenceMs / 1_000} s`, { cause: error })
      : error;
  } finally {
    clearTimeout(timer);
  }
}
