import { useCallback, useEffect, useState } from 'preact/hooks';
import { callAdmin } from './admin-api.ts';
import { errorText } from './error-text.ts';

/** What is known of an answer: the latest one stays while the next one is waited for. */
export interface Asked<Answer> {
  readonly answer: Answer | null;
  readonly error: string | null;
  readonly isWaiting: boolean;
  /** Asks again. */
  readonly reload: () => void;
}

/** Asks a path of the admin API, and again whenever the path changes; `null` asks nothing. */
export function useAnswer<Answer>(path: string | null): Asked<Answer> {
  const [state, setState] = useState<Omit<Asked<Answer>, 'reload'> & { path: string | null }>(
    nothing(path, path !== null),
  );
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (path === null) return setState(nothing(path, false));
    const controller = new AbortController();
    setState((before) => (before.path === path ? { ...before, isWaiting: true } : nothing(path, true)));
    callAdmin<Answer>(path, { signal: controller.signal }).then(
      (answer) => setState({ path, answer, error: null, isWaiting: false }),
      (error: unknown) => {
        if (controller.signal.aborted) return;
        setState((before) => ({ ...before, error: errorText(error), isWaiting: false }));
      },
    );
    return () => controller.abort();
  }, [path, round]);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  return { ...state, reload };
}

function nothing(path: string | null, isWaiting: boolean) {
  return { path, answer: null, error: null, isWaiting };
}
