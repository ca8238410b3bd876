import type { AuditEntry } from '../domain/audit/audit-line.ts';
import type { AuditTrail } from '../domain/ports/audit.ts';
import type { TaskPorts } from './repeat.ts';

/** How many refusals have lines of their own in a window, which begins with the first one, in milliseconds. */
const maxRefusals = 30;
const windowMs = 60_000;

/** How many lines wait for the database at most. */
const maxWaiting = 1_000;

/**
 * Writes down what operators did that changes no key, and what was refused, one line after the other. Calls that are refused
 * need no token: beyond a number in a minute they are counted, and one line says how many there were. Lines that the database
 * does not take are reported and lost.
 */
export function noteActs(trail: Pick<AuditTrail, 'add'>, { ready, clock, onFault }: TaskPorts) {
  let writing: Promise<void> = Promise.resolve();
  let waiting = 0;
  let refused = 0;
  let cancelWindow: (() => void) | null = null;

  const write = (entry: AuditEntry): void => {
    if (waiting >= maxWaiting) return onFault(failure, 'too many lines wait');
    waiting++;
    writing = writing
      .then(() => ready)
      .then(() => trail.add([entry]))
      .catch((error: unknown) => onFault(failure, error))
      .finally(() => waiting--);
  };
  const endWindow = (): void => {
    cancelWindow?.();
    cancelWindow = null;
    const more = refused - maxRefusals;
    refused = 0;
    if (more > 0) write({ ...moreRefused, times: more });
  };
  const note = (entry: AuditEntry): void => {
    if (entry.result === 'done') return write(entry);
    cancelWindow ??= clock.schedule(windowMs, endWindow);
    refused++;
    if (refused <= maxRefusals) write(entry);
  };
  return {
    note,
    /** Resolves when all is written that was noted, or could not be. */
    stop: async (): Promise<void> => {
      endWindow();
      await writing;
    },
  };
}

const failure = 'a line of the audit could not be stored';

const moreRefused: AuditEntry = {
  actor: { way: 'admin_api', name: null, address: null },
  action: 'more.refused',
  keyId: null,
  subject: null,
  result: 'refused',
  times: 0,
  changes: [],
};
