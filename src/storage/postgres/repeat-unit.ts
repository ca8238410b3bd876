import { AnsweredError } from './connection/failure-reason.ts';

/** How often a unit is repeated before it is rejected. */
const maxRepeats = 3;

/**
 * A serialization failure and a deadlock: the database has undone the whole unit for the sake of another one. No other
 * error says so, and a unit whose connection was lost may have been done.
 */
const undoneCodes: ReadonlySet<string> = new Set(['40001', '40P01']);

/** Runs a unit, and runs it again when the database has undone it for the sake of another one. */
export async function repeatUnit<Done>(unit: () => Promise<Done>): Promise<Done> {
  for (let repeats = 0; ; repeats++)
    try {
      return await unit();
    } catch (error) {
      const isUndone = error instanceof AnsweredError && undoneCodes.has(error.code);
      if (!isUndone || repeats === maxRepeats) throw error;
    }
}
