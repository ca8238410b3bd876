import { keyEntry, safeChanges } from '../domain/audit/audit-line.ts';
import type { Actor, AuditEntry } from '../domain/audit/audit-line.ts';
import { differencesOf, withoutEndedWaits } from '../domain/audit/differences.ts';
import type { Fields } from '../domain/audit/differences.ts';
import { originAlone } from '../domain/audit/safe-text.ts';
import type { AuditTrail } from '../domain/ports/audit.ts';
import type { TaskPorts } from './repeat.ts';

/** The pause after a config that could not be noted, in milliseconds. */
const retryMs = 5_000;

/** By what way a config comes into force. */
const byConfig: Actor = { way: 'config', name: null, address: null };

/** That a config could not be loaded. What is wrong with it is in the log. */
export const invalidConfig: AuditEntry = {
  ...keyEntry(byConfig, 'config.load', null, []),
  result: 'config_invalid',
};

/**
 * Notes in the audit what each config that is put into force changes, also while the gateway did not run: it is compared with
 * the one that was noted last. So of several processes that load the same config, one notes it.
 */
export function noteConfigs(trail: Pick<AuditTrail, 'noteConfig'>, { ready, clock, onFault }: TaskPorts) {
  let current: Fields | null = null;
  let cancelRetry: (() => void) | null = null;
  let writing: Promise<void> = Promise.resolve();

  const write = async (settings: Fields): Promise<void> => {
    // One after the other: an earlier config must not be noted behind a later one.
    if (settings !== current) return;
    const after = JSON.stringify([...settings].toSorted(([one], [other]) => (one < other ? -1 : 1)));
    try {
      await trail.noteConfig(byConfig, (before) => ({ after, changes: changesSince(before, settings) }));
    } catch (error) {
      onFault('what a config changes could not be noted in the audit', error);
      if (settings === current) cancelRetry = clock.schedule(retryMs, () => tryToWrite(settings));
    }
  };
  const tryToWrite = (settings: Fields): void => {
    const before = writing;
    // A database that can't be opened has failed the start, which reports it.
    writing = ready.then(
      async () => {
        await before;
        await write(settings);
      },
      () => {},
    );
  };
  return {
    note: (settings: Fields): void => {
      cancelRetry?.();
      current = settings;
      tryToWrite(settings);
    },
    /** Resolves when nothing is written any more. */
    stop: async (): Promise<void> => {
      await writing;
      cancelRetry?.();
      current = null;
    },
  };
}

function changesSince(before: string | null, settings: Fields) {
  if (before === null) return [];
  const noted = JSON.parse(before) as [string, string][];
  // Earlier versions noted addresses with their paths.
  const known = new Map(noted.map(([field, value]) => [field, originAlone(value)]));
  return safeChanges(withoutEndedWaits(differencesOf(known, settings)));
}
