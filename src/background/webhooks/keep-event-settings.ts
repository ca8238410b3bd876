import type { EventSettings, Outbox } from '../../domain/ports/outbox.ts';
import type { TaskPorts } from '../repeat.ts';

/** How long after a failure the settings are written again, in milliseconds. */
const writeAgainMs = 5_000;

/** Keeps the settings in the database by which its triggers add events, and repeats what fails. */
export function keepEventSettings(outbox: Outbox, { ready, clock, onFault }: TaskPorts) {
  let wanted: EventSettings | null = null;
  let isStopped = false;
  let cancel: (() => void) | null = null;
  let writing = ready.then(
    () => {},
    () => void (isStopped = true),
  );
  const write = async (): Promise<void> => {
    const settings = wanted;
    if (settings === null || isStopped) return;
    try {
      await outbox.storeSettings(settings);
      if (wanted === settings) wanted = null;
    } catch (error) {
      onFault('the settings of events could not be stored: it is tried again', error);
      if (!isStopped) cancel = clock.schedule(writeAgainMs, next);
    }
  };
  function next(): void {
    cancel?.();
    writing = writing.then(write);
  }
  return {
    /** Has the settings of a config written, in place of the earlier ones. */
    set(settings: EventSettings): void {
      wanted = settings;
      next();
    },
    /** Resolves once the last settings were written, or could not be for now. */
    stored: () => writing,
    /** Resolves when nothing is written any more. */
    async stop(): Promise<void> {
      isStopped = true;
      cancel?.();
      await writing;
    },
  };
}
