import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { lockHolders } from './lock-holders.ts';

/** The size of a write-ahead log that is reported, in bytes; without a reader that holds it up it has some 4 MB. */
const reportedBytes = 67_108_864;

/** The bytes of the log's index that its readers lock (https://sqlite.org/walformat.html). */
const firstReaderByte = 123;
const lastReaderByte = 127;

/** The watch over the size of a write-ahead log. */
export interface LogGrowth {
  /** The size at the last look. */
  readonly bytes: number;
  note(bytes: number): void;
}

/** Reports a log that can't be folded into the database at `path`, once each time that it becomes so long, with the cause. */
export function watchLogGrowth(path: string, isCopying: () => boolean, onFault: ReportFault): LogGrowth {
  let bytes = 0;
  let isReported = false;
  return {
    get bytes() {
      return bytes;
    },
    note(found) {
      bytes = found;
      if (bytes < reportedBytes) isReported = false;
      else if (!isReported) {
        isReported = true;
        onFault(
          'the write-ahead log of the database keeps growing',
          `it has ${Math.round(bytes / 1_000_000)} MB: ${isCopying() ? 'a backup is being made, after which it shrinks' : describeReaders(path)}`,
        );
      }
    },
  };
}

function describeReaders(path: string): string {
  const ids = lockHolders(`${path}-shm`, (byte) => byte >= firstReaderByte && byte <= lastReaderByte);
  return ids.length === 0
    ? 'something has read the database for long, such as another program that has the file open. When it ends, the log shrinks'
    : `another program reads the database (process id ${ids.join(', ')}). When it ends its transaction, the log shrinks`;
}
