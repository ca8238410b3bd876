import { openSync, write } from 'node:fs';
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { WriteStream } from 'node:tty';

/** How much may wait to be written, in bytes; further lines are dropped. */
const maxWaitingBytes = 4_194_304;

/** How much goes out in one write, in bytes, if more than one line waits. */
const maxBatchBytes = 65_536;

/** Writes one chunk at a time; `done` is called when it is out, or with the error that kept it from that. */
export type Sink = (chunk: string, done: (error: Error | null) => void) => void;

/** A place for lines that never blocks its caller and never throws. */
export interface LogDestination {
  /** Takes one line, with its line feed. */
  write(line: string): void;
  /** How many lines were lost so far: too many waited, or a write failed. */
  readonly droppedLines: number;
  /** Waits until all is written, at most `limitMs` milliseconds; false when the time was not enough. */
  flush(limitMs: number): Promise<boolean>;
}

/**
 * Queues lines in front of a sink that may be slow, stalled or failing. `describeLoss` writes the line that tells how
 * many were dropped; it goes out as soon as writing works again.
 */
export function createLogDestination(
  sink: Sink,
  describeLoss: (lines: number) => string,
  limitBytes = maxWaitingBytes,
): LogDestination {
  let waiting: string[] = [];
  let waitingBytes = 0;
  let isWriting = false;
  let isFailing = false;
  let dropped = 0;
  let untold = 0;
  let flushed: PromiseWithResolvers<void> | null = null;

  const drop = (lines: number): void => {
    dropped += lines;
    untold += lines;
  };
  const writeNext = (): void => {
    if (isWriting) return;
    const hasLoss = untold > 0 && !isFailing;
    if (waiting.length === 0 && !hasLoss) {
      flushed?.resolve();
      flushed = null;
      return;
    }
    const batch = takeBatch(waiting);
    waiting = waiting.slice(batch.length);
    const told = untold;
    isWriting = true;
    sink((told > 0 ? describeLoss(told) : '') + batch.join(''), (error) => {
      isWriting = false;
      isFailing = error !== null;
      waitingBytes -= batch.reduce((bytes, line) => bytes + Buffer.byteLength(line), 0);
      if (isFailing) drop(batch.length);
      else untold -= told;
      writeNext();
    });
  };
  return {
    get droppedLines() {
      return dropped;
    },
    write(line) {
      const bytes = Buffer.byteLength(line);
      if (waitingBytes + bytes > limitBytes) return drop(1);
      waiting.push(line);
      waitingBytes += bytes;
      writeNext();
    },
    async flush(limitMs) {
      if (!isWriting && waiting.length === 0) return true;
      flushed ??= Promise.withResolvers<void>();
      const late = Promise.withResolvers<boolean>();
      const timer = setTimeout(() => late.resolve(false), limitMs);
      const isDone = await Promise.race([flushed.promise.then(() => true), late.promise]);
      clearTimeout(timer);
      return isDone;
    },
  };
}

/** The first of the waiting lines: as many as fit into one write, and at least one. */
function takeBatch(waiting: readonly string[]): readonly string[] {
  let bytes = 0;
  const end = waiting.findIndex((line, index) => {
    bytes += Buffer.byteLength(line);
    return index > 0 && bytes > maxBatchBytes;
  });
  return end === -1 ? waiting : waiting.slice(0, end);
}

/** What `process.stdout` and `process.stderr` have, whatever they lead to. */
type StandardStream = Writable & { readonly fd: number; readonly isTTY?: boolean };

/** Standard output or standard error as a destination, whatever they lead to. */
export function openStandardStream(
  stream: StandardStream,
  describeLoss: (lines: number) => string,
): LogDestination {
  return createLogDestination(sinkOf(stream), describeLoss);
}

/**
 * Node writes to pipes and sockets without blocking, but to terminals and files with calls that block the whole
 * process: a terminal that is paused, or a network file system that hangs, would stop every request.
 */
function sinkOf(stream: StandardStream): Sink {
  if (!(stream instanceof Socket)) return writeToFile(stream.fd);
  const target = stream.isTTY === true ? openTerminal(stream) : stream;
  guardErrors(target);
  return (chunk, done) => void target.write(chunk, (error) => done(error ?? null));
}

/** Streams whose errors have a listener: every gateway of a process may write to the same one. */
const guarded = new WeakSet<Writable>();

/** An error comes to the callback of its write, too; without a listener the event would end the process. */
function guardErrors(stream: Writable): void {
  if (guarded.has(stream)) return;
  guarded.add(stream);
  stream.on('error', () => {});
}

/** A handle of our own on a terminal that does not block: the one in `process` stays as others expect it. */
function openTerminal(stream: StandardStream): Writable {
  try {
    const terminal = new WriteStream(openSync(`/dev/fd/${stream.fd}`, 'w'));
    (terminal as unknown as { _handle: { setBlocking(on: boolean): void } })._handle.setBlocking(false);
    return terminal;
  } catch {
    // A terminal of another user, after su, can't be opened again.
    return stream;
  }
}

/** Writes to a file or a device in the thread pool. A line that was cut off by an error is ended before the next one. */
function writeToFile(fd: number): Sink {
  let isCut = false;
  return (chunk, done) => {
    const bytes = Buffer.from(isCut ? `\n${chunk}` : chunk);
    const writeFrom = (offset: number): void => {
      write(fd, bytes, offset, bytes.length - offset, null, (error, written) => {
        const end = offset + (error === null ? written : 0);
        if (error === null && end < bytes.length) return writeFrom(end);
        if (end > 0) isCut = bytes[end - 1] !== newline;
        done(error);
      });
    };
    writeFrom(0);
  };
}

const newline = 0x0a;
