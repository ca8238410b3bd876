import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../domain/ports/clock.ts';
import { connectionOf } from './connection.ts';
import { Roster } from '../../shared/roster.ts';

/**
 * How many times longer the limit is, and from how many bytes sent on a connection: the system accepts more bytes only when
 * a good part of its buffer, which grows to megabytes, is read.
 */
const largeSentBytes = 1_000_000;
const largeSentFactor = 4;

/** How often open answers are checked, in milliseconds: an unread one is cut this much too late at most. */
const mostCheckMs = 5_000;

/** Watches an answer until it ends. */
export type UnreadWatch = (response: ServerResponse) => void;

/** How far the client had read an answer, and since when it has not read on. */
interface Watched {
  readonly response: ServerResponse;
  sentBytes: number;
  sinceMs: number;
}

/**
 * Closes the connection of a client that leaves written bytes unread for `maxUnreadMs` milliseconds: they are held in memory,
 * and a request that waits for them keeps its slot and its upstream. One timer serves all answers, and runs only while there
 * are any.
 */
export function createUnreadWatch(clock: Clock, maxUnreadMs: number): UnreadWatch {
  const checkMs = Math.min(mostCheckMs, maxUnreadMs);
  const watched = new Roster<Watched>();
  let cancel: (() => void) | null = null;

  const check = (): void => {
    const nowMs = clock.monotonicMs();
    for (const before of watched.all()) {
      const { response } = before;
      const sentBytes = countSent(response.socket);
      const isUnread = response.socket !== null && response.socket.writableLength > 0;
      if (!isUnread || sentBytes !== before.sentBytes) Object.assign(before, { sentBytes, sinceMs: nowMs });
      else if (nowMs - before.sinceMs >= maxUnreadMs * (sentBytes < largeSentBytes ? 1 : largeSentFactor))
        response.destroy();
    }
    cancel = clock.schedule(checkMs, check);
  };

  return (response) => {
    if (response.destroyed) return;
    const sentBytes = countSent(response.socket);
    const place = watched.add({ response, sentBytes, sinceMs: clock.monotonicMs() });
    cancel ??= clock.schedule(checkMs, check);
    response.on('close', () => {
      watched.remove(place);
      if (watched.size > 0) return;
      cancel?.();
      cancel = null;
    });
  };
}

/** The fields of a socket's handle that Node's own idle timeout reads. */
interface Handle {
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
}

/**
 * How many of the written bytes the system has accepted. A socket's public figures count a write only when all of it is
 * sent, so a client that reads one large answer slowly would seem to read nothing.
 */
function countSent(socket: Socket | null): number {
  if (socket === null) return 0;
  // Over TLS, the socket of the answer counts what has been encrypted.
  const { _handle: handle } = (connectionOf(socket)?.rawSocket ?? socket) as {
    readonly _handle?: Handle | null;
  };
  if (handle?.bytesWritten === undefined || handle.writeQueueSize === undefined)
    return socket.bytesWritten - socket.writableLength;
  return handle.bytesWritten - handle.writeQueueSize;
}
