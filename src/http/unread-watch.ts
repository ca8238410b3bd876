import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../domain/ports/clock.ts';

/** How long a client may leave written bytes unread, in milliseconds. */
const maxUnreadMs = 30_000;

/**
 * From how many sent bytes on a connection a longer time holds, and that time in milliseconds: the system reports that
 * more can be sent only when a good part of its buffer, which grows to megabytes, is read.
 */
const largeSentBytes = 1_000_000;
const maxUnreadOfLargeMs = 120_000;

/** How often open answers are looked at, in milliseconds: one that is not read is cut this much too late at the most. */
const lookMs = 5_000;

/** Watches an answer until it is over. */
export type UnreadWatch = (response: ServerResponse) => void;

/** How far the client had read an answer, and since when it has not read on. */
interface Progress {
  readonly sentBytes: number;
  readonly sinceMs: number;
}

/**
 * Breaks the connection of every client that leaves written bytes unread: they are held in memory, and an exchange
 * that waits for them keeps its slot and its upstream. One timer serves all answers, and runs only while there are any.
 */
export function createUnreadWatch(clock: Clock): UnreadWatch {
  const watched = new Map<ServerResponse, Progress>();
  let cancel: (() => void) | null = null;

  const look = (): void => {
    const nowMs = clock.monotonicMs();
    for (const [response, before] of watched) {
      const sentBytes = countSent(response.socket);
      const isUnread = response.socket !== null && response.socket.writableLength > 0;
      if (!isUnread || sentBytes !== before.sentBytes) watched.set(response, { sentBytes, sinceMs: nowMs });
      else if (nowMs - before.sinceMs >= limitOf(sentBytes)) response.destroy();
    }
    cancel = clock.schedule(lookMs, look);
  };

  return (response) => {
    if (response.destroyed) return;
    watched.set(response, { sentBytes: countSent(response.socket), sinceMs: clock.monotonicMs() });
    cancel ??= clock.schedule(lookMs, look);
    response.once('close', () => {
      watched.delete(response);
      if (watched.size > 0) return;
      cancel?.();
      cancel = null;
    });
  };
}

function limitOf(sentBytes: number): number {
  return sentBytes < largeSentBytes ? maxUnreadMs : maxUnreadOfLargeMs;
}

/** The part of a socket's handle that Node's own idle timeout looks at. */
interface Handle {
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
}

/**
 * How many bytes the system took of what was written. A socket's public figures count a write when all of it is out, so
 * a client that reads one large answer slowly would look as if it read nothing.
 */
function countSent(socket: Socket | null): number {
  if (socket === null) return 0;
  const { _handle: handle } = socket as { readonly _handle?: Handle | null };
  if (handle?.bytesWritten === undefined || handle.writeQueueSize === undefined)
    return socket.bytesWritten - socket.writableLength;
  return handle.bytesWritten - handle.writeQueueSize;
}
