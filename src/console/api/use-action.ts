import { useState } from 'preact/hooks';
import { errorText } from './admin-api.ts';

/** What a form or a button does, one at a time, and why it failed. */
interface Action<Given extends readonly unknown[]> {
  readonly run: (...given: Given) => Promise<void>;
  readonly isWaiting: boolean;
  readonly error: string | null;
  /** Forgets why it failed. */
  readonly clear: () => void;
}

/** Runs an action; another run is left out while it waits for its answer. */
export function useAction<Given extends readonly unknown[] = []>(
  action: (...given: Given) => Promise<unknown>,
): Action<Given> {
  const [error, setError] = useState<string | null>(null);
  const [isWaiting, setIsWaiting] = useState(false);
  const run = async (...given: Given): Promise<void> => {
    if (isWaiting) return;
    setError(null);
    setIsWaiting(true);
    try {
      await action(...given);
    } catch (failure) {
      setError(errorText(failure));
    } finally {
      setIsWaiting(false);
    }
  };
  return { run, isWaiting, error, clear: () => setError(null) };
}
