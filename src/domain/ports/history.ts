import type { HistoryPart } from '../history/interval.ts';

/** A part of an interval as it is stored: its figures and groups are a text. */
export interface StoredPart extends Omit<HistoryPart, 'figures' | 'groups'> {
  readonly text: string;
}

/** Which parts are read: those of one grouping whose intervals begin in a time, in milliseconds since 1970. */
export interface HistoryRange extends Pick<HistoryPart, 'grouping' | 'lengthMs'> {
  readonly fromMs: number;
  /** Not included. */
  readonly toMs: number;
}

/** The history that all processes on a database write. */
export interface HistoryStore {
  /** Stores parts, each in the place of one that is there, and removes the parts that are too old; in one unit. */
  write(parts: readonly StoredPart[], nowMs: number): Promise<void>;
  /** Reads the parts of all processes in the order of time, some at a time, so that requests are served in between. */
  read(range: HistoryRange): AsyncIterable<readonly HistoryPart[]>;
}
