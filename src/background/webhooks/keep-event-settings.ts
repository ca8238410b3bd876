import type { EventSettings, Outbox } from '../../domain/ports/outbox.ts';
import type { TaskPorts } from '../repeat.ts';

/** How long after a failure the settings are written again, in milliseconds. */
const writeAgainMs = 5_000;

interface SettingsPorts extends TaskPorts {
  readonly outbox: Outbox;
}

/** The writing of the settings by which the database adds events. */
export interface EventSettingsKeeper {
  /** Has the settings of a config written, in place of the earlier ones. */
  set(settings: EventSettings): void;
  /** Resolves once the last settings were written, or could not be for now. */
  stored(): Promise<void>;
  /** Resolves when nothing is written any more. */
  stop(): Promise<void>;
}

/** Keeps the settings in the database that its triggers read, and repeats what fails. */
export function keepEventSettings({ outbox, ready, clock, onFault }: SettingsPorts): EventSettingsKeeper {
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
    set(settings) {
      wanted = settings;
      next();
    },
    stored: () => writing,
    async stop() {
      isStopped = true;
      cancel?.();
      await writing;
    },
  };
}
