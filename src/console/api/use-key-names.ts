import { useEffect, useState } from 'preact/hooks';
import { readKeyNames } from './read-key-names.ts';
import type { KeyNames } from './read-key-names.ts';

/** The names that were read last: they are shown until they are read again, so that tables don't change for nothing. */
let latest: KeyNames = new Map();

/** The names of some keys, as far as they can be read. They are read for each new list, as keys may be renamed. */
export function useKeyNames(ids: readonly string[]): KeyNames {
  const [names, setNames] = useState(latest);
  useEffect(() => {
    if (ids.length === 0) return;
    const controller = new AbortController();
    readKeyNames(ids, controller.signal).then(
      (found) => {
        latest = found;
        if (!controller.signal.aborted) setNames(found);
      },
      // Without their names keys are shown by their ids, and what else fails says why.
      () => {},
    );
    return () => controller.abort();
  }, [ids]);
  return names;
}
