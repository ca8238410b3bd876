import type { Actor, AuditEntry } from '../domain/audit/audit-line.ts';
import type { LogFields } from '../domain/ports/telemetry.ts';
import type { AuditTrail } from '../domain/ports/audit.ts';
import type { TaskPorts } from './repeat.ts';

/**
 * How many refusals of one operator, or of all strangers, and how many try-outs have lines of their own in a window, which
 * begins with the first one, and how long it is, in milliseconds.
 */
const maxOwnLines = 30;
const windowMs = 60_000;

/** How many lines wait for the database at most. */
const maxWaiting = 1_000;

/** How many refusals, or try-outs, of one operator, or of all strangers, there were since a moment: by whatever way. */
interface Window {
  count: number;
  readonly end: () => void;
}

/**
 * Writes down what operators did that changes no key, and what was refused, one line after the other. Calls that are refused
 * need no token, and a script may try a model out again and again: beyond a number in a minute they are counted, and one line
 * says how many there were. Each operator is counted alone, so that no stranger hides what an operator was refused. Lines that
 * the database does not take are in the log instead.
 */
export function noteActs(trail: Pick<AuditTrail, 'add'>, { ready, clock, onFault }: TaskPorts) {
  let writing: Promise<void> = Promise.resolve();
  let waiting = 0;
  const windows = new Map<string, Window>();

  const write = (entry: AuditEntry): void => {
    if (waiting >= maxWaiting) return onFault(failure, 'too many lines wait', logged(entry));
    waiting++;
    writing = writing
      .then(() => ready)
      .then(() => trail.add([entry]))
      .catch((error: unknown) => onFault(failure, error, logged(entry)))
      .finally(() => waiting--);
  };
  const openWindow = (whose: string, { way, name }: Actor, more: More): Window => {
    const end = (): void => {
      cancel();
      windows.delete(whose);
      const times = window.count - maxOwnLines;
      if (times > 0) write({ ...more, actor: { way, name, address: null }, times });
    };
    const cancel = clock.schedule(windowMs, end);
    const window = { count: 0, end };
    windows.set(whose, window);
    return window;
  };
  const note = (entry: AuditEntry): void => {
    const more = moreOf(entry);
    if (more === null) return write(entry);
    const { way, name } = entry.actor;
    // A refused config has no name either, and is not counted among what strangers try.
    const whose = JSON.stringify([more.action, name, way === 'config']);
    const window = windows.get(whose) ?? openWindow(whose, entry.actor, more);
    window.count++;
    if (window.count <= maxOwnLines) write(entry);
  };
  return {
    note,
    /** Resolves when all is written that was noted, or could not be. */
    stop: async (): Promise<void> => {
      for (const { end } of windows.values()) end();
      await writing;
    },
  };
}

const failure = 'a line of the audit could not be stored';

/** What the log says of an entry that is not stored: else nothing would say what was done meanwhile. */
function logged({ actor, action, keyId, subject, result, times }: AuditEntry): LogFields {
  const { way, name, address } = actor;
  const fields = { way, actor: name, action, keyId, subject, result, times };
  return address === null ? fields : { ...fields, clientAddress: address };
}

/** What one line says of all that have none of their own. */
type More = Omit<AuditEntry, 'actor' | 'times'>;

const moreTried: More = { action: 'request.try', result: 'done', keyId: null, subject: null, changes: [] };
const moreRefused: More = { ...moreTried, action: 'more.refused', result: 'refused' };

/** What is said of those like an entry that are too many; `null` where each has a line. */
function moreOf({ action, result }: AuditEntry): More | null {
  // What was done has a line, also where its client did not wait for the answer.
  const isDone = result === 'done' || result === 'unanswered' || result === 'client_closed';
  if (!isDone) return moreRefused;
  return action === 'request.try' ? moreTried : null;
}
