import { openSync, write } from 'node:fs';
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { WriteStream } from 'node:tty';

/** How many bytes may wait to be written; further lines are dropped. */
const maxWaitingBytes = 4_194_304;

/** How many bytes of waiting lines are joined into one write; a single longer line is written whole. */
const maxBatchBytes = 65_536;

/**
 * The same where several processes write to one output: the system keeps so many bytes together in a pipe (PIPE_BUF of
 * Linux), while those of a longer write may lie between those of another process when the pipe is full.
 */
const maxSharedBatchBytes = 4_096;

/**
 * How long lines are collected after a write, unless they fill the next one, in milliseconds: each write costs several calls of
 * the system, and to a file the waking of two threads.
 */
const defaultCollectMs = 10;

/** Writes one chunk at a time, and calls `done` when the next one may come, or with the error. */
export type Sink = (chunk: string, done: (error: Error | null) => void) => void;

/** Takes lines without ever blocking or throwing. */
export interface LogDestination {
  /** Takes one line, with its line feed. */
  write(line: string): void;
  /** Lines lost since the start: too many waited, or a write failed. */
  readonly droppedLines: number;
  /** Waits until everything is written, at most `limitMs` milliseconds; false when that was too short. */
  flush(limitMs: number): Promise<boolean>;
}

/**
 * Queues lines in front of a sink that may be slow, stalled or failing. `describeLoss` builds the line with the number of
 * dropped lines; it is written as soon as writing works again.
 */
export function createLogDestination(
  sink: Sink,
  describeLoss: (lines: number) => string,
  limitBytes = maxWaitingBytes,
  { batchBytes = maxBatchBytes, collectMs = 0 } = {},
): LogDestination {
  let waiting: string[] = [];
  let waitingBytes = 0;
  let isWriting = false;
  let collecting: NodeJS.Timeout | null = null;
  let isFailing = false;
  let dropped = 0;
  let unreported = 0;
  let flushed: PromiseWithResolvers<void> | null = null;

  const drop = (lines: number): void => {
    dropped += lines;
    unreported += lines;
  };
  const writeNext = (): void => {
    if (isWriting) return;
    if (waiting.length === 0 && (unreported === 0 || isFailing)) {
      flushed?.resolve();
      flushed = null;
      return;
    }
    if (collecting !== null) return;
    const batch = takeBatch(waiting, batchBytes);
    waiting = waiting.slice(batch.length);
    const reported = unreported;
    isWriting = true;
    const chunk = (reported > 0 ? describeLoss(reported) : '') + batch.join('');
    sink(chunk, (error) => {
      isWriting = false;
      isFailing = error !== null;
      waitingBytes -= batch.reduce((bytes, line) => bytes + Buffer.byteLength(line), 0);
      if (isFailing) drop(batch.length);
      else unreported -= reported;
      if (collectMs > 0 && flushed === null && waitingBytes < batchBytes)
        collecting = setTimeout(endCollecting, collectMs);
      writeNext();
    });
  };
  const endCollecting = (): void => {
    if (collecting !== null) clearTimeout(collecting);
    collecting = null;
    writeNext();
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
      if (waitingBytes >= batchBytes) endCollecting();
      writeNext();
    },
    async flush(limitMs) {
      if (!isWriting && waiting.length === 0) return true;
      flushed ??= Promise.withResolvers<void>();
      endCollecting();
      return resolvesWithin(flushed.promise, limitMs);
    },
  };
}

/** Whether a promise resolves within a time, in milliseconds. */
async function resolvesWithin(done: Promise<void>, limitMs: number): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => late.resolve(false), limitMs);
  const isDone = await Promise.race([done.then(() => true), late.promise]);
  clearTimeout(timer);
  return isDone;
}

/** The first waiting lines: as many as fit into one write, and at least one. */
function takeBatch(waiting: readonly string[], batchBytes: number): readonly string[] {
  let bytes = 0;
  const end = waiting.findIndex((line, index) => {
    bytes += Buffer.byteLength(line);
    return index > 0 && bytes > batchBytes;
  });
  return end === -1 ? waiting : waiting.slice(0, end);
}

/** The common part of `process.stdout` and `process.stderr`, which may be pipes, terminals or files. */
type StandardStream = Writable & { readonly fd: number; readonly isTTY?: boolean };

/**
 * Opens standard output or standard error as a destination that does not block; of an output that is shared with other
 * processes, each line stays whole.
 */
export function openStandardStream(
  stream: StandardStream,
  describeLoss: (lines: number) => string,
  isShared = false,
): LogDestination {
  const batchBytes = isShared ? maxSharedBatchBytes : maxBatchBytes;
  const settings = { batchBytes, collectMs: defaultCollectMs };
  return createLogDestination(sinkOf(stream), describeLoss, maxWaitingBytes, settings);
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

/** Streams that have an error listener: all gateways of a process may share one stream. */
const guarded = new WeakSet<Writable>();

/** The write's callback gets the error as well; without a listener the event would end the process. */
function guardErrors(stream: Writable): void {
  if (guarded.has(stream)) return;
  guarded.add(stream);
  stream.on('error', () => {});
}

/** Opens the terminal again without blocking; the stream in `process` keeps the mode that other code expects. */
function openTerminal(stream: StandardStream): Writable {
  try {
    const terminal = new WriteStream(openSync(`/dev/fd/${stream.fd}`, 'w'));
    (terminal as unknown as { _handle: { setBlocking(on: boolean): void } })._handle.setBlocking(false);
    return terminal;
  } catch {
    // After `su` the terminal belongs to another user and can't be opened again.
    return stream;
  }
}

/** Writes to a file or a device in the thread pool. After an error in mid-line, the next chunk starts on a new line. */
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
