import { isRefusal, refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';
import type { ConsumptionRecord } from '../domain/money/consumption.ts';
import { createPause } from '../domain/pause.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { ReadRecord, Retention } from '../domain/ports/retention.ts';
import { oneAtATime } from './one-at-a-time.ts';
import { readOldest } from './remove-records.ts';

/** The pause between two reads and two folds, in milliseconds. */
const pauseMs = 5;

/** The age that records have to have before they can be archived, in milliseconds: their requests have ended by then. */
const minAgeMs = 86_400_000;

/** What an operator does with old records. Times are milliseconds since 1970. */
export interface RecordArchiving {
  /**
   * The ended records from before a time, oldest first, in pages, and that time; without one, those that `records.keep` calls
   * old. Reading rejects when the signal is raised.
   */
  read(
    beforeMs: number | undefined,
    signal: AbortSignal,
  ): { readonly beforeMs: number; readonly pages: AsyncIterable<readonly ConsumptionRecord[]> } | Refusal;
  /** Removes records that the operator has; resolves with how many were still there, as they were read. */
  remove(records: readonly ReadRecord[], beforeMs: number): Promise<number | Refusal>;
  /** Folds the postings of removed records; resolves with how many. Rejects when the signal is raised. */
  fold(signal: AbortSignal): Promise<number | Refusal>;
}

interface ArchivingOptions {
  readonly clock: Clock;
  /** The time before which `records.keep` calls records old; `null` without it. */
  readonly oldBefore: () => number | null;
  readonly onRemoved: (count: number) => void;
}

/** Lets an operator read, remove and fold old records. */
export function createArchiving(
  retention: Retention,
  { clock, oldBefore, onRemoved }: ArchivingOptions,
): RecordArchiving {
  const beginFold = oneAtATime('The folding of the ledger');
  const whyTooYoung = (beforeMs: number): Refusal | null =>
    beforeMs <= clock.now() - minAgeMs
      ? null
      : refuse(
          'invalid_value',
          "Invalid 'before': records can be archived when they are a day old: " +
            `write ${new Date(clock.now() - minAgeMs).toISOString().slice(0, 10)} or an earlier day.`,
          { param: 'before' },
        );
  return {
    read(given, signal) {
      const beforeMs = given ?? oldBefore();
      if (beforeMs === null)
        return refuse('invalid_value', "Missing 'before': give a day, or set records.keep.", {
          param: 'before',
        });
      const pages = readOldest(retention, beforeMs, createPause(clock, pauseMs, signal));
      return whyTooYoung(beforeMs) ?? { beforeMs, pages };
    },
    async remove(records, beforeMs) {
      const tooYoung = whyTooYoung(beforeMs);
      if (tooYoung !== null) return tooYoung;
      const count = await retention.removeRecords(records, beforeMs);
      onRemoved(count);
      return count;
    },
    async fold(signal) {
      const end = beginFold();
      if (isRefusal(end)) return end;
      try {
        return await retention.foldLedgers(createPause(clock, pauseMs, signal));
      } finally {
        end();
      }
    },
  };
}
