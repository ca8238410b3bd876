import { useCallback, useEffect, useLayoutEffect, useState, useRef } from 'preact/hooks';
import { errorText, callAdmin } from './admin-api.ts';

/** What is known of an answer: the latest one stays while the next one is waited for. */
export interface Asked<Answer> {
  readonly answer: Answer | null;
  readonly error: string | null;
  readonly isWaiting: boolean;
  /** Asks again. */
  readonly reload: () => void;
}

type Loaded<Answer> = Omit<Asked<Answer>, 'reload'> & { readonly name: string | null };

/**
 * Loads what several requests tell, and again whenever its name changes; a name of `null` loads nothing. What is shown under
 * one name is never what was loaded under another.
 */
export function useLoaded<Answer>(
  name: string | null,
  load: (signal: AbortSignal) => Promise<Answer>,
): Asked<Answer> {
  const [state, setState] = useState<Loaded<Answer>>(nothing(name));
  const [round, setRound] = useState(0);
  // Before the next frame, behind which other effects run: the answer comes a frame sooner.
  useLayoutEffect(() => {
    if (name === null) return;
    const controller = new AbortController();
    setState((before) => (before.name === name ? { ...before, isWaiting: true } : nothing(name)));
    load(controller.signal).then(
      (answer) => {
        if (!controller.signal.aborted) setState({ name, answer, error: null, isWaiting: false });
      },
      (error: unknown) => {
        if (controller.signal.aborted) return;
        setState((before) => ({ ...before, error: errorText(error), isWaiting: false }));
      },
    );
    return () => controller.abort();
  }, [name, round]);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  return { ...(state.name === name ? state : nothing(name)), reload };
}

function nothing(name: string | null) {
  return { name, answer: null, error: null, isWaiting: name !== null };
}

/** Asks a path of the admin API, and again whenever the path changes; `null` asks nothing. */
export function useAnswer<Answer>(path: string | null): Asked<Answer> {
  return useLoaded<Answer>(path, (signal) => callAdmin<Answer>(path ?? '', { signal }));
}

/**
 * Reads an answer again at an interval, in milliseconds. A slow answer is waited for: asking again would break it off each
 * time. A page in the background asks for nothing, and `null` never asks again.
 */
export function usePolling(
  { isWaiting, reload }: Pick<Asked<unknown>, 'isWaiting' | 'reload'>,
  everyMs: number | null,
): void {
  const isBusy = useRef(isWaiting);
  isBusy.current = isWaiting;
  useEffect(() => {
    if (everyMs === null) return;
    const timer = setInterval(() => {
      if (!isBusy.current && !document.hidden) reload();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
}
